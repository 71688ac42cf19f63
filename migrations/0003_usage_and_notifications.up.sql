-- Daily usage per organisation, and the outbox of notifications by e-mail. New tables alone; their references keep writers of organisations and
-- projects waiting for the moment of the commit.
-- blocks: writes of organisations, projects

-- What an organisation used on one UTC day. Agents and servers add to it every few seconds, not with each event.
create table usage_days (
  organisation_id uuid not null references organisations,
  day             date not null,
  -- accepted, duplicates left out
  events          bigint not null default 0 check (events >= 0),
  -- ended in success
  deliveries      bigint not null default 0 check (deliveries >= 0),
  -- of the data of these events
  bytes           bigint not null default 0 check (bytes >= 0),
  -- billing has begun to post it: nothing is added any more, so that every try posts the same
  closed_at       timestamptz,
  posted_at       timestamptz,
  check (posted_at is null or closed_at is not null),
  primary key (organisation_id, day)
);
create index usage_days_unposted on usage_days (day, organisation_id) where posted_at is null;

create type notification_kind as enum ('endpoint_disabled', 'endpoint_failing', 'source_failing', 'licence_expiring', 'licence_expired');
create type notification_status as enum ('waiting', 'sent', 'given_up');

-- What people are told by e-mail, once for all agents together.
create table notifications (
  id              uuid primary key,
  kind            notification_kind not null,
  -- null: about the whole instance
  project_id      uuid references projects,
  -- id of the endpoint or source; of a licence what makes it another one
  subject         text not null,
  -- what the e-mail says beside the names, which are looked up when it is sent
  facts           jsonb not null,
  -- agents.id
  raised_by       integer,
  created_at      timestamptz not null default now(),
  -- when what it tells of was over; until then it is not raised again
  ended_at        timestamptz,
  status          notification_status not null default 'waiting',
  -- when it is tried (again); whoever takes it moves this ahead, so that it comes back when that agent dies
  next_attempt_at timestamptz default now(),
  attempts        integer not null default 0,
  sent_at         timestamptz,
  last_error      text,
  check ((status = 'waiting') = (next_attempt_at is not null)),
  check ((status = 'sent') = (sent_at is not null))
);
create unique index notifications_open on notifications (kind, subject) where ended_at is null;
create index notifications_subject on notifications (kind, subject, created_at);
create index notifications_due on notifications (next_attempt_at) where status = 'waiting';
create index notifications_sent on notifications (sent_at);
