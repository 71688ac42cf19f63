-- Whether an event was replayed: routing it then makes no delivery for an endpoint that has one of it, by whatever subscription. Null: it was not, or with force.
-- Locks: events for a moment; the column has no default, so no row is rewritten.

alter table events add column replayed boolean;
