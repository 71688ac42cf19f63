-- A day is made although the default partition holds rows of it, as those of a producer whose clock is ahead: they move to the new partition in the same
-- transaction. One such row kept a day from being made, and all its traffic went to the default partition. Beyond 100,000 rows of a table, which would block
-- writers for seconds, the day is left to the default partition, and agents and doctor report it.
-- The function takes the lock that making a partition takes, before it looks for rows.
-- blocks: nothing

create or replace function ensure_day(day date) returns boolean language plpgsql as $$
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
