-- The function of a subscription, and what it made of the data of an event for one delivery, which every further attempt sends. Both are null for most rows, and
-- then they take no space.
-- blocks: reads and writes of event_deliveries, subscriptions

alter table subscriptions add column function text;
alter table event_deliveries add column transformed_data text;
