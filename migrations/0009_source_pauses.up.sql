-- A source whose transform function overruns again and again is paused for a while, and tried again by itself. Agents of the schema before it go on
-- reading such a source, as they did.
-- blocks: reads and writes of sources, 0.2 s per million rows

alter table sources
  add column paused_at    timestamptz,
  -- when it is tried again by itself
  add column resumes_at   timestamptz,
  -- sentences for a person
  add column pause_reason text,
  -- name of the agent
  add column paused_by    text,
  -- pauses one after the other, each twice as long as the one before; 0 again when a person has changed the function or resumed the source
  add column pauses       integer not null default 0 check (pauses >= 0),
  -- when it was last tried again by itself
  add column resumed_at   timestamptz,
  add check ((paused_at is null) = (resumes_at is null)),
  add check ((paused_at is null) = (pause_reason is null)),
  add check ((paused_at is null) = (paused_by is null));
