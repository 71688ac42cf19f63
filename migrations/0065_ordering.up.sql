-- What orders the deliveries of an endpoint or a subscription, and what a delivery that failed for good does to those behind it.
-- plane: control
-- blocks: reads and writes of endpoints, subscriptions

alter table endpoints
  -- message.key, or a path that begins with data. or headers.; null: deliveries are not ordered
  add column ordering text,
  -- park or skip; null: park
  add column ordering_failure text,
  add column ordering_park_after_seconds int;
-- replaces that of the endpoint
alter table subscriptions add column ordering text;
