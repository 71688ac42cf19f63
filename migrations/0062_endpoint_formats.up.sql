-- Endpoints to which events are sent as messages of a service, and the operational events that tell of notifications.
-- They replace notification channels: agents make endpoints of these, and the next release drops notification_channels and channel_notifications.
-- plane: control
-- blocks: reads and writes of endpoints
-- blocks: reads and writes of notifications, 0.5 s per million rows

-- slack, teams, pagerduty, opsgenie; null: the data of the event
alter table endpoints add column format text;

alter table notifications
  -- when an event about it is due; whoever makes the event moves this ahead, so that it comes back when that agent dies
  add column event_due_at timestamptz,
  -- the event that tells of it; when another is due, it is that of its end
  add column event_id uuid;
create index notifications_untold on notifications (event_due_at) where event_due_at is not null;

-- Channels have told of these.
update notifications set event_id = id where ended_at is null and id not in (select notification_id from channel_notifications);
update notifications set event_due_at = now() where id in (select notification_id from channel_notifications where not is_recovery);

-- Whoever raises or ends a notification makes its event due in the same commit.
create function tell_notification() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and new.created_at <> old.created_at then
    new.event_id := null;
  end if;
  new.event_due_at := now();
  perform pg_notify('gateway_notifications', '');
  return new;
end $$;
create trigger tell_raised before insert or update of created_at on notifications for each row execute function tell_notification();
create trigger tell_ended before update of ended_at on notifications for each row
  when (old.ended_at is null and new.ended_at is not null) execute function tell_notification();
