delete from notification_channels where type = 'events';
create or replace function queue_channel_notification() returns trigger language plpgsql as $$
begin
  insert into channel_notifications (channel_id, notification_id, is_recovery)
  select c.id, new.id, tg_op = 'UPDATE' from notification_channels c
  where c.project_id = new.project_id and c.deleted_at is null
    and case when new.kind::text = 'channel_test' then c.id::text = new.subject
             else c.enabled and (c.kinds is null or new.kind::text = any (c.kinds)) end
  on conflict do nothing;
  if found then
    perform pg_notify('gateway_notifications', '');
  end if;
  return null;
end $$;
