-- The projects whose new events belong to another shard. Every statement that accepts events reads it, so that nothing is accepted here after a move.
-- plane: data
-- blocks: nothing

create table moved_projects (
  project_id uuid primary key,
  to_shard   text not null
);
