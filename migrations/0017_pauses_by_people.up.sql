-- A person may pause a source too, until somebody resumes it: `resumes_at` is null then. Agents of the version before go on reading such a source.
-- blocks: reads and writes of sources, 0.2 s per million rows

alter table sources
  drop constraint sources_check,
  add check (paused_at is not null or resumes_at is null);
