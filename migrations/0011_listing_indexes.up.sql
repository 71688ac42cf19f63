-- Lists of events and deliveries by any combination of their filters read an index, however many rows do not match. A delivery enters its two indexes when it
-- leaves an agent, so that it does once. event_deliveries_endpoint stays for processes of the version before.
-- blocks: writes of events, 6.4 s per million rows
-- blocks: writes of event_deliveries, 2.3 s per million rows

create index events_by_source on events (project_id, coalesce(source_id, '00000000-0000-0000-0000-000000000000'), status, id);
create index events_by_type on events (project_id, event_type, coalesce(source_id, '00000000-0000-0000-0000-000000000000'), status, id);
create index events_by_key on events (project_id, idempotency_key) where idempotency_key is not null;
create index event_deliveries_by_status on event_deliveries (project_id, status, id) where status <> 'processing';
create index event_deliveries_by_endpoint on event_deliveries (project_id, endpoint_id, status, id) where status <> 'processing';
