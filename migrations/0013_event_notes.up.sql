-- What the sender of an event should know, such as a header that was left out: JSON text of an array of sentences. Null for nearly all events, and then it
-- takes no space.
-- Locks: events and its partitions for the moment of the commit; the column has no default, so nothing is rewritten.

alter table events add column notes text;
