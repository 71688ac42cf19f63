-- When a project was last moved to another shard: for a while, messages that its former shards have may be delivered again.
-- plane: control
-- blocks: reads and writes of projects

alter table projects add column moved_at timestamptz;
