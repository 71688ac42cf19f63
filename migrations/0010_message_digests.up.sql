-- Which message an event was made of: a message that comes again has the same digest, another one at the same coordinates and time has not. Null for events
-- over the API, and for those that agents of the schema before it accept.
-- blocks: reads and writes of events

alter table events add column digest bytea;
