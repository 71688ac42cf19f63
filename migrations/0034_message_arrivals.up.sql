-- When messages arrived whose own time cannot be, such as microseconds in place of milliseconds. The arrival dates their events, and a message that its broker
-- delivers again has the arrival that is stored here, so that it is a duplicate.
-- blocks: nothing

create table message_arrivals (
  project_id uuid not null,
  -- of an event, or of the message in quarantine, by the time that its broker gave
  id         uuid not null,
  arrived_at timestamptz not null default date_trunc('milliseconds', now()),
  primary key (project_id, id)
);
