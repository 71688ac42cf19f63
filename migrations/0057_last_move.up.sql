-- The number of the last move of a project.
-- plane: control
-- blocks: reads and writes of projects

alter table projects add column move_number bigint not null default 0;
