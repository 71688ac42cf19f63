-- What the queue series are made of: who a delivery is of stands in its row, so that what is not finished is counted by its partial indexes, and what is
-- finished is counted as it finishes.
-- blocks: writes of events, 0.4 s per million rows
-- blocks: reads and writes of event_deliveries, 0.5 s per million rows
-- blocks: writes of delivery_attempts, 0.4 s per million rows

alter table event_deliveries
  -- of its event; null: made by a gateway that did not know these columns
  add column event_type  text,
  -- null: its event was created over the API
  add column source_id   uuid,
  -- of the last attempt, when it was traced
  add column traceparent text;

update event_deliveries d set event_type = e.event_type, source_id = e.source_id
from events e
where d.status in ('scheduled', 'processing', 'retry') and e.project_id = d.project_id and e.id = d.event_id and e.occurred_at = d.occurred_at;

-- How many events, deliveries and attempts ended how, ever: what is forgotten by retention stays counted, a delivery that is made due again does not.
-- A source is its id, api, or empty where event_deliveries does not say (event_type is null).
create table event_counts (
  project_id uuid not null,
  source     text not null,
  status     event_status not null check (status <> 'pending'),
  n          bigint not null,
  primary key (project_id, source, status)
) with (fillfactor = 50);

create table event_delivery_counts (
  project_id  uuid not null,
  endpoint_id uuid not null,
  source      text not null,
  event_type  text not null,
  status      event_delivery_status not null check (status in ('success', 'failure', 'discarded')),
  n           bigint not null,
  primary key (project_id, endpoint_id, source, event_type, status)
) with (fillfactor = 50);

create table delivery_attempt_counts (
  project_id  uuid not null,
  endpoint_id uuid not null,
  delivered   boolean not null,
  -- 0: no response
  http_status smallint not null,
  n           bigint not null,
  primary key (project_id, endpoint_id, delivered, http_status)
) with (fillfactor = 50);

-- What statements add to these counts: a row per statement and project, written with the rows that it counts, and folded into the counts soon after. Nobody
-- who commits waits for another so. Arrays, one element per count, because a row each would cost as much as the rows that are counted.
create table count_changes (
  project_id    uuid not null,
  -- null: events are counted
  endpoints     uuid[] not null,
  sources       uuid[] not null,
  -- null: attempts are counted, or a delivery that has none
  event_types   text[] not null,
  -- of attempts: success or failure
  statuses      text[] not null,
  -- null: not attempts; 0: attempts without a response
  http_statuses smallint[] not null,
  changes       integer[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000000);

-- The last sample of the queue series, for all processes. Whatever is lost here is there again after the next sample.
create unlogged table metric_samples (
  singleton boolean primary key default true check (singleton),
  taken_at  timestamptz not null,
  -- how long it took
  seconds   float8 not null,
  body      text not null
);

-- Counts everything anew, by one read of the three tables. Locks them against writers.
create function recount_finished() returns void language plpgsql as $$
begin
  lock table events, event_deliveries, delivery_attempts in share mode;
  delete from count_changes;
  delete from event_counts;
  delete from event_delivery_counts;
  delete from delivery_attempt_counts;
  insert into event_counts
    select project_id, coalesce(source_id::text, 'api'), status, count(*) from events where status <> 'pending' group by 1, 2, 3;
  insert into event_delivery_counts
    select project_id, endpoint_id, case when event_type is null then '' else coalesce(source_id::text, 'api') end, coalesce(event_type, ''), status, count(*)
    from event_deliveries where status in ('success', 'failure', 'discarded') group by 1, 2, 3, 4, 5;
  insert into delivery_attempt_counts
    select project_id, endpoint_id, error_class is null, coalesce(http_status, 0), count(*) from delivery_attempts group by 1, 2, 3, 4;
end $$;

select recount_finished();
