-- What the sender of an event should know, such as a header that was left out: JSON text of an array of sentences. Null for nearly all events, and then it
-- takes no space.
-- blocks: reads and writes of events

alter table events add column notes text;
