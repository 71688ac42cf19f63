-- Every paused source is read again.
alter table sources
  drop column paused_at, drop column resumes_at, drop column pause_reason, drop column paused_by, drop column pauses, drop column resumed_at;
