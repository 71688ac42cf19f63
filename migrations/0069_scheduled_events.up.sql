-- Events that are delivered later. Agents make events of them when they are due.
-- plane: control
-- blocks: writes of projects
create table scheduled_events (
  project_id uuid not null references projects (id),
  -- the id of the event, whose time is deliver_at
  id uuid not null,
  deliver_at timestamptz not null,
  -- whoever makes the event moves this ahead, so that it comes back when that agent dies
  due_at timestamptz not null,
  created_at timestamptz not null default now(),
  event_type text not null,
  message_type text not null,
  endpoint_id uuid,
  owner_id text,
  idempotency_key text,
  headers jsonb not null,
  -- JSON, byte for byte
  data text not null,
  primary key (project_id, id)
);
create index scheduled_events_due on scheduled_events (due_at);
create unique index scheduled_events_key on scheduled_events (project_id, idempotency_key) where idempotency_key is not null;
