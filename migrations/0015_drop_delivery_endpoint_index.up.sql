-- event_deliveries_by_endpoint has replaced this index, and every delivery entered it twice.
-- contracts: processes of the version before list the deliveries of an endpoint more slowly, and lose nothing else.
-- Locks: deliveries are closed to everyone for the moment of the commit.

drop index event_deliveries_endpoint;
