-- Lists with filters read more rows again.
drop index events_by_source, events_by_type, events_by_key, event_deliveries_by_status, event_deliveries_by_endpoint;
