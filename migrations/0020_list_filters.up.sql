-- Lists filter deliveries by event type, quarantined messages by source, code and status, and endpoints by owner, each by an index.
-- blocks: writes of event_deliveries, 1.8 s per million rows
-- blocks: writes of quarantined_messages, 5.2 s per million rows
-- blocks: writes of endpoints, 1.6 s per million rows

create index event_deliveries_by_type on event_deliveries (project_id, event_type, status, id) where status <> 'processing';
create index quarantined_messages_by_source on quarantined_messages (project_id, source_id, status, id);
create index quarantined_messages_by_code on quarantined_messages (project_id, code, source_id, status, id);
create index endpoints_by_owner on endpoints (project_id, owner_id, id) where deleted_at is null;
