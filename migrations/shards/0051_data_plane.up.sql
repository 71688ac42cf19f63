-- The data plane of a shard other than the default one: the tables of events, deliveries and counts as migrations 0001 to 0051 leave them.
-- blocks: nothing

create type event_status as enum ('pending', 'processed', 'failed');
create type message_type as enum ('single', 'fanout', 'broadcast');
create type event_delivery_status as enum ('scheduled', 'processing', 'retry', 'success', 'failure', 'discarded');
create type quarantine_status as enum ('quarantined', 'replayed', 'discarded');

create table events (
  project_id uuid not null,
  id uuid not null,
  occurred_at timestamptz not null,
  accepted_at timestamptz default now() not null,
  source_id uuid,
  coordinates text not null,
  event_type text not null,
  message_type message_type default 'single' not null,
  endpoint_id text,
  owner_id text,
  idempotency_key text,
  status event_status not null,
  outcome text,
  headers text not null,
  data text not null,
  digest bytea,
  notes text,
  replayed boolean,
  check ((status = 'pending') = (outcome is null)),
  primary key (project_id, id, occurred_at)
) partition by range (occurred_at);
create table events_default partition of events default;
create index events_by_key on events (project_id, idempotency_key) where idempotency_key is not null;
create index events_by_outcome on events (project_id, outcome, id) where outcome <> 'routed';
create index events_by_source on events (project_id, coalesce(source_id, '00000000-0000-0000-0000-000000000000'::uuid), status, id);
create index events_by_type on events (project_id, event_type, coalesce(source_id, '00000000-0000-0000-0000-000000000000'::uuid), status, id);
create index events_pending on events (accepted_at) where status = 'pending';

create table event_deliveries (
  project_id uuid not null,
  id uuid not null,
  occurred_at timestamptz not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  subscription_id uuid,
  claimed_by integer,
  attempts smallint default 0 not null,
  recovered smallint default 0 not null,
  status event_delivery_status not null,
  next_attempt_at timestamptz,
  created_at timestamptz default now() not null,
  updated_at timestamptz default now() not null,
  reason text,
  event_type text,
  source_id uuid,
  traceparent text,
  transformed_data text,
  check ((status = 'processing') = (claimed_by is not null)),
  check ((status in ('scheduled', 'retry')) = (next_attempt_at is not null)),
  primary key (project_id, id, occurred_at)
) partition by range (occurred_at);
create table event_deliveries_default partition of event_deliveries default;
create index event_deliveries_by_endpoint on event_deliveries (project_id, endpoint_id, status, id) where status <> 'processing';
create index event_deliveries_by_status on event_deliveries (project_id, status, id) where status <> 'processing';
create index event_deliveries_by_type on event_deliveries (project_id, event_type, status, id) where status <> 'processing';
create index event_deliveries_claimed on event_deliveries (claimed_by) where status = 'processing';
create index event_deliveries_due on event_deliveries (project_id, next_attempt_at) where status in ('scheduled', 'retry');
create index event_deliveries_held on event_deliveries (project_id, endpoint_id) where next_attempt_at = 'infinity';

create table delivery_attempts (
  project_id uuid not null,
  event_delivery_id uuid not null,
  id uuid not null,
  occurred_at timestamptz not null,
  requested_at timestamptz not null,
  endpoint_id uuid not null,
  duration_ms integer not null,
  number smallint not null,
  http_status smallint,
  error_class text,
  error text,
  url text not null,
  response_headers text,
  response_body text,
  primary key (project_id, event_delivery_id, id, occurred_at)
) partition by range (occurred_at);
create table delivery_attempts_default partition of delivery_attempts default;

create table event_messages (
  project_id uuid not null,
  id uuid not null,
  occurred_at timestamptz not null,
  digest bytea not null,
  headers text not null,
  raw bytea,
  raw_bytes integer not null,
  primary key (project_id, id, occurred_at)
) partition by range (occurred_at);
create table event_messages_default partition of event_messages default;

create table quarantined_messages (
  project_id uuid not null,
  id uuid not null,
  source_id uuid not null,
  occurred_at timestamptz not null,
  created_at timestamptz default now() not null,
  updated_at timestamptz default now() not null,
  status quarantine_status default 'quarantined' not null,
  coordinates text not null,
  code text not null,
  reason text not null,
  headers text not null,
  raw bytea not null,
  edited_raw bytea,
  edited_at timestamptz,
  check ((edited_raw is null) = (edited_at is null)),
  primary key (project_id, id)
);
create index quarantined_messages_by_code on quarantined_messages (project_id, code, source_id, status, id);
create index quarantined_messages_by_source on quarantined_messages (project_id, source_id, status, id);
create index quarantined_messages_waiting on quarantined_messages (project_id, id) where status = 'quarantined';

create table idempotency_keys (
  project_id uuid not null,
  key text not null,
  event_id uuid not null,
  expires_at timestamptz not null,
  primary key (project_id, key)
);
create index idempotency_keys_expired on idempotency_keys (expires_at);

create table message_arrivals (
  project_id uuid not null,
  id uuid not null,
  arrived_at timestamptz default date_trunc('milliseconds', now()) not null,
  primary key (project_id, id)
);

create table agents (
  id integer generated always as identity,
  name text not null,
  started_at timestamptz default now() not null,
  expires_at timestamptz not null,
  reads_sources boolean default true not null,
  primary key (id)
);

create table event_counts (
  project_id uuid not null,
  source text not null,
  status event_status not null,
  n bigint not null,
  check (status <> 'pending'),
  primary key (project_id, source, status)
) with (fillfactor = 50);

create table event_delivery_counts (
  project_id uuid not null,
  endpoint_id uuid not null,
  source text not null,
  event_type text not null,
  status event_delivery_status not null,
  n bigint not null,
  check (status in ('success', 'failure', 'discarded')),
  primary key (project_id, endpoint_id, source, event_type, status)
) with (fillfactor = 50);

create table delivery_attempt_counts (
  project_id uuid not null,
  endpoint_id uuid not null,
  delivered boolean not null,
  http_status smallint not null,
  n bigint not null,
  primary key (project_id, endpoint_id, delivered, http_status)
) with (fillfactor = 50);

create table count_changes (
  project_id uuid not null,
  endpoints uuid[] not null,
  sources uuid[] not null,
  event_types text[] not null,
  statuses text[] not null,
  http_statuses smallint[] not null,
  changes integer[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000000);

create table activity (
  project_id uuid not null,
  endpoint_id uuid not null,
  at timestamptz not null,
  kind text not null,
  status text not null,
  n bigint not null,
  check (kind in ('event', 'delivery', 'attempt')),
  primary key (project_id, endpoint_id, at, kind, status)
) with (fillfactor = 70);
create index activity_at on activity (at);
create index activity_failures on activity (project_id, at) where kind = 'attempt' and status = 'failure';

create table backlog_samples (
  project_id uuid not null,
  at timestamptz not null,
  pending_events bigint not null,
  waiting_deliveries bigint not null,
  primary key (project_id, at)
);
create index backlog_samples_at on backlog_samples (at);

create unlogged table metric_samples (
  singleton boolean default true not null,
  taken_at timestamptz not null,
  seconds double precision not null,
  body text not null,
  check (singleton),
  primary key (singleton)
);

-- As in 0033.
create function ensure_day(day date) returns boolean language plpgsql as $$
declare
  parent  text;
  name    text;
  strays  bigint;
  made    boolean := false;
  first   timestamptz := day::timestamp at time zone 'UTC';
  next    timestamptz := (day + 1)::timestamp at time zone 'UTC';
begin
  foreach parent in array array['events', 'event_deliveries', 'delivery_attempts', 'event_messages'] loop
    name := parent || '_' || to_char(day, 'YYYYMMDD');
    continue when to_regclass(name) is not null;
    execute format('lock table only %I, %I in access exclusive mode', parent, parent || '_default');
    execute format('select count(*) from (select from %I where occurred_at >= %L and occurred_at < %L limit 100001) s', parent || '_default', first, next)
      into strays;
    continue when strays > 100000;
    execute format('create table %I (like %I including defaults including constraints including storage including compression)', name, parent);
    if strays > 0 then
      execute format('with gone as (delete from %I where occurred_at >= %L and occurred_at < %L returning *) insert into %I select * from gone',
                     parent || '_default', first, next, name);
    end if;
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, name, first, next);
    made := true;
  end loop;
  return made;
end $$;

select ensure_day((now() at time zone 'UTC')::date + n) from generate_series(0, 7) n;
