-- What a shard refuses of a project: all while the project moves away and after that, and on its new shard what is not copied yet. Every statement that
-- accepts events reads it. It replaces moved_projects, which the next release drops.
-- plane: data
-- blocks: nothing

create table project_fences (
  project_id  uuid primary key,
  -- the number of the move: a process that hung during an earlier one changes nothing
  move_number bigint not null,
  -- events and quarantined messages with this id or a lower one are refused; null: none
  through     uuid,
  -- whether the counts of the project were added to those of this shard
  is_counted  boolean not null default false
);
