-- A person may pause a source too, until somebody resumes it: `resumes_at` is null then. Agents of the version before go on reading such a source.
-- Locks: sources for the moment of the commit; the check reads a table of a few rows.

alter table sources
  drop constraint sources_check,
  add check (paused_at is not null or resumes_at is null);
