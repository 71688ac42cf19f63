-- As in 0032.
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
