-- no transaction
-- Kinds of notifications: the circuit breaker of an endpoint opened, and deliveries to it have no retry left.
-- blocks: nothing
alter type notification_kind add value if not exists 'endpoint_breaker';
alter type notification_kind add value if not exists 'endpoint_exhausted';
