-- Channels of a project to which notifications are sent beside e-mail, and the clock of endpoints that only fail.
-- blocks: writes of projects, endpoints, notifications

create table notification_channels (
  project_id      uuid not null references projects,
  id              uuid not null,
  name            text not null check (name <> ''),
  -- slack, teams, pagerduty, opsgenie, webhook
  type            text not null,
  -- the URL or keys of the type; secret ones are sealed
  settings        jsonb not null,
  -- kinds of notifications; null: all
  kinds           text[] check (cardinality(kinds) > 0),
  enabled         boolean not null default true,
  -- when something may be sent (again); whoever sends moves this ahead, so that it comes back when that agent dies
  next_attempt_at timestamptz not null default now(),
  -- failed requests since the last good one
  failures        integer not null default 0,
  last_sent_at    timestamptz,
  last_error      text,
  last_error_at   timestamptz,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  deleted_at      timestamptz,
  primary key (project_id, id),
  unique (id)
);

-- What a channel has yet to send, in this order.
create table channel_notifications (
  n               bigint generated always as identity primary key,
  channel_id      uuid not null references notification_channels (id) on delete cascade,
  notification_id uuid not null references notifications on delete cascade,
  -- the cause is over
  is_recovery     boolean not null,
  created_at      timestamptz not null default now(),
  unique (channel_id, notification_id, is_recovery)
);
create index channel_notifications_notification on channel_notifications (notification_id);

-- Whoever raises or ends a notification queues it for the channels in the same commit.
create function queue_channel_notification() returns trigger language plpgsql as $$
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
create trigger raised_notification after insert on notifications for each row execute function queue_channel_notification();
create trigger ended_notification after update of ended_at on notifications for each row
  when (old.ended_at is null and new.ended_at is not null) execute function queue_channel_notification();

-- Endpoints of projects with disable_after_days that have failed and not succeeded since then.
create table endpoint_outages (
  project_id  uuid not null,
  endpoint_id uuid not null,
  since       timestamptz not null,
  warned_at   timestamptz,
  primary key (project_id, endpoint_id),
  foreign key (project_id, endpoint_id) references endpoints on delete cascade
);
