-- Channels of which agents have made endpoints come back, unless these were deleted.
update notification_channels c set deleted_at = null, next_attempt_at = now()
where next_attempt_at = 'infinity' and (type = 'events' or exists (
  select from endpoints e where e.project_id = c.project_id and e.id = c.id and e.deleted_at is null));
delete from subscriptions where (project_id, endpoint_id) in (select project_id, id from notification_channels where deleted_at is null);
delete from endpoints where (project_id, id) in (select project_id, id from notification_channels where deleted_at is null);
-- They would get the data of events.
update endpoints set status = 'inactive', status_reason = 'This version does not know its format.' where format is not null;
alter table endpoints drop column format;
drop trigger tell_ended on notifications;
drop trigger tell_raised on notifications;
drop function tell_notification();
alter table notifications drop column event_due_at, drop column event_id;
