-- The way of a message: events, their deliveries, the attempts, and the messages that could not be accepted.
--
-- Ids are made from what must be unique (docs/decisions/0003): the first 48 bits are the broker's time of the message in milliseconds, the rest
-- is a hash of (source, coordinates) for an event and of (event, endpoint, subscription) for a delivery. So the primary key alone refuses
-- a redelivered message and a second fan-out, grows at its end like a sequence, and names the partition of its row.
-- All three big tables are partitioned by the broker's time of the message, so that retention is the drop of a partition.
-- blocks: nothing

create type event_status as enum ('pending', 'processed', 'failed');
create type message_type as enum ('single', 'fanout', 'broadcast');
create type event_delivery_status as enum ('scheduled', 'processing', 'retry', 'success', 'failure', 'discarded');
create type quarantine_status as enum ('quarantined', 'replayed', 'discarded');

-- Running agents. A claim of an agent that is not here, or whose row has expired, is void.
create table agents (
  id         integer generated always as identity primary key,
  name       text not null,
  started_at timestamptz not null default now(),
  expires_at timestamptz not null
);

create table events (
  project_id      uuid not null,
  id              uuid not null,
  occurred_at     timestamptz not null,
  accepted_at     timestamptz not null default now(),
  -- null: created over the API
  source_id       uuid,
  coordinates     text not null,
  event_type      text not null,
  message_type    message_type not null default 'single',
  endpoint_id     text,
  owner_id        text,
  idempotency_key text,
  status          event_status not null,
  -- why it went where it went; a code of the outcomes table, null while pending
  outcome         text,
  -- JSON object of string to string
  headers         text not null,
  -- the JSON text as it came, byte for byte
  data            text not null,
  check ((status = 'pending') = (outcome is null)),
  primary key (project_id, id, occurred_at)
) partition by range (occurred_at);
create index events_pending on events (accepted_at) where status = 'pending';

create table event_deliveries (
  project_id      uuid not null,
  id              uuid not null,
  occurred_at     timestamptz not null,
  event_id        uuid not null,
  endpoint_id     uuid not null,
  subscription_id uuid,
  -- the running agent that holds it (agents.id)
  claimed_by      integer,
  attempts        smallint not null default 0,
  -- times that it was taken from a dead agent: each may be a second request for the same attempt
  recovered       smallint not null default 0,
  status          event_delivery_status not null,
  -- when it is due; infinity while its endpoint is paused
  next_attempt_at timestamptz,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  -- why it was discarded or failed, for a person
  reason          text,
  check ((status = 'processing') = (claimed_by is not null)),
  check ((status in ('scheduled', 'retry')) = (next_attempt_at is not null)),
  primary key (project_id, id, occurred_at)
) partition by range (occurred_at);
create index event_deliveries_due on event_deliveries (project_id, next_attempt_at) where status in ('scheduled', 'retry');
create index event_deliveries_claimed on event_deliveries (claimed_by) where status = 'processing';
create index event_deliveries_endpoint on event_deliveries (project_id, endpoint_id, id);

create table delivery_attempts (
  project_id        uuid not null,
  event_delivery_id uuid not null,
  id                uuid not null,
  occurred_at       timestamptz not null,
  requested_at      timestamptz not null,
  endpoint_id       uuid not null,
  duration_ms       integer not null,
  number            smallint not null,
  -- null: no response
  http_status       smallint,
  -- dns, connect, proxy, tls, timeout, reset, refused_address, status, ...; null: delivered
  error_class       text,
  error             text,
  url               text not null,
  response_headers  text,
  response_body     text,
  primary key (project_id, event_delivery_id, id, occurred_at)
) partition by range (occurred_at);

create table quarantined_messages (
  project_id  uuid not null,
  id          uuid not null,
  source_id   uuid not null,
  occurred_at timestamptz not null,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  status      quarantine_status not null default 'quarantined',
  coordinates text not null,
  -- a code of the refusals table, and the sentence for a person
  code        text not null,
  reason      text not null,
  headers     text not null,
  raw         bytea not null,
  primary key (project_id, id)
);

-- A key can be used again when its window has passed.
create table idempotency_keys (
  project_id uuid not null,
  key        text not null,
  event_id   uuid not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);
create index idempotency_keys_expired on idempotency_keys (expires_at);

-- Makes the partitions of one UTC day in all three tables; true when it made any. A day that the default partition already
-- holds rows of is left to it: making it would fail, and those rows are found there all the same.
create function ensure_day(day date) returns boolean language plpgsql as $$
declare
  parent text;
  name   text;
  made   boolean := false;
begin
  foreach parent in array array['events', 'event_deliveries', 'delivery_attempts'] loop
    name := parent || '_' || to_char(day, 'YYYYMMDD');
    if to_regclass(name) is null then
      begin
        execute format('create table %I partition of %I for values from (%L) to (%L)', name, parent,
                       day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
        made := true;
      exception when check_violation then null;
      end;
    end if;
  end loop;
  return made;
end $$;

create table events_default            partition of events            default;
create table event_deliveries_default  partition of event_deliveries  default;
create table delivery_attempts_default partition of delivery_attempts default;

select ensure_day((now() at time zone 'UTC')::date + n) from generate_series(-1, 7) n;
