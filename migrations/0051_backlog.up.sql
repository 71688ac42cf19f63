-- What waited in each minute, so that the backlog can be charted. One agent counts it, apart from the statements that make or finish work.
-- blocks: nothing

create table backlog_samples (
  -- the nil UUID: the minute was counted, and projects without a row had nothing waiting
  project_id         uuid not null,
  at                 timestamptz not null,
  pending_events     bigint not null,
  -- due now or later; those held for paused endpoints are not counted
  waiting_deliveries bigint not null,
  primary key (project_id, at)
);
create index backlog_samples_at on backlog_samples (at);
