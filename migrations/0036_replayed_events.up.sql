-- Whether an event was replayed: routing it then makes no delivery for an endpoint that has one of it, by whatever subscription. Null: it was not, or with force.
-- blocks: reads and writes of events

alter table events add column replayed boolean;
