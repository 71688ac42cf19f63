-- When how much happened, for charts: what is added to the counts is added here too, with the time at which it was counted.
-- blocks: nothing

create table activity (
  project_id  uuid not null,
  -- '00000000-…': of the whole project
  endpoint_id uuid not null,
  -- of a project the minute, of an endpoint the ten minutes that begin then
  at          timestamptz not null,
  kind        text not null check (kind in ('event', 'delivery', 'attempt')),
  status      text not null,
  n           bigint not null,
  primary key (project_id, endpoint_id, at, kind, status)
) with (fillfactor = 70);
create index activity_at on activity (at);
