create index event_deliveries_endpoint on event_deliveries (project_id, endpoint_id, id);
