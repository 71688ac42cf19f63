-- Each move of a project has a number, higher than that of every earlier one, so that a process that hung during a move cannot undo a later one.
-- plane: data
-- blocks: reads and writes of moved_projects

alter table moved_projects add column move_number bigint not null default 0;
