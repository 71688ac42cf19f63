-- Failures of an endpoint, grouped by the kind of error. Agents count them in memory and add them here every two seconds.
-- blocks: nothing

create table issues (
  project_id        uuid not null,
  endpoint_id       uuid not null,
  -- 'http_503', or the class of an error without an answer, as 'timeout'; 'other' of those beyond the bound
  kind              text not null,
  id                uuid not null,
  -- since the issue was last resolved for more than an hour
  first_seen_at     timestamptz not null,
  last_seen_at      timestamptz not null,
  failures          bigint not null,
  -- the newest failed attempt
  event_delivery_id uuid not null,
  http_status       smallint,
  error             text not null,
  -- It came back within an hour, so that one success does not resolve it.
  recurs            boolean not null default false,
  resolved_at       timestamptz,
  muted_at          timestamptz,
  primary key (project_id, endpoint_id, kind)
) with (fillfactor = 70);
create unique index issues_listed on issues (project_id, id);
create index issues_open on issues (endpoint_id) where resolved_at is null;
