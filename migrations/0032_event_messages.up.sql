-- The message that events were made of, for sources that keep messages: once for all events of a message, under the id of the first of them, written in the
-- commit of its events. Partitioned as events are, so that retention drops both.
-- blocks: reads and writes of sources

alter table sources add column keep_messages boolean not null default false;

create table event_messages (
  project_id  uuid not null,
  id          uuid not null,
  occurred_at timestamptz not null,
  -- first 64 bits of its SHA-256, as of its events: another message may have the same coordinates and time
  digest      bytea not null,
  -- JSON object of string to string
  headers     text not null,
  -- as it came; null: too large to be kept
  raw         bytea,
  raw_bytes   integer not null,
  primary key (project_id, id, occurred_at)
) partition by range (occurred_at);
create table event_messages_default partition of event_messages default;

-- As in 0002, with the fourth table.
create or replace function ensure_day(day date) returns boolean language plpgsql as $$
declare
  parent text;
  name   text;
  made   boolean := false;
begin
  foreach parent in array array['events', 'event_deliveries', 'delivery_attempts', 'event_messages'] loop
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

-- The days that events have.
select ensure_day(to_date(right(c.relname, 8), 'YYYYMMDD'))
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'events'::regclass and c.relname ~ '^events_[0-9]{8}$';
