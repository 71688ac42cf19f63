-- event_deliveries_by_endpoint has replaced this index, and every delivery entered it twice.
-- contracts: processes of the version before list the deliveries of an endpoint more slowly, and lose nothing else.
-- blocks: reads and writes of event_deliveries

drop index event_deliveries_endpoint;
