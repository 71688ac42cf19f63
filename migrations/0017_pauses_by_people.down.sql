-- Sources that a person has paused are read again.
update sources set paused_at = null, pause_reason = null, paused_by = null where resumes_at is null;
alter table sources
  drop constraint sources_check,
  add constraint sources_check check ((paused_at is null) = (resumes_at is null));
