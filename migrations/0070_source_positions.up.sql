-- How far sources have been read. It outlives the offsets that a broker keeps, and tells which messages were read before.
-- plane: control
-- blocks: nothing

create table source_positions (
  project_id    uuid not null,
  source_id     uuid not null,
  -- of the partition, as its plugin names it
  name          text not null,
  -- of the next message, in the notation of the plugin
  position      text not null,
  -- when the run began that recorded it
  run_began_at  timestamptz not null,
  -- when a person moved the source: runs that began before do not overwrite it
  moved_at      timestamptz,
  primary key (source_id, name)
);
