-- rebuilt: agents
drop table idempotency_keys, quarantined_messages, delivery_attempts, event_deliveries, events, agents;
drop function ensure_day(date);
drop type quarantine_status, event_delivery_status, message_type, event_status;
