drop function ensure_day(date);
drop table events, event_deliveries, delivery_attempts, event_messages, quarantined_messages, idempotency_keys, message_arrivals, agents;
-- rebuilt: event_counts, event_delivery_counts, delivery_attempt_counts, count_changes, activity, backlog_samples, metric_samples
drop table event_counts, event_delivery_counts, delivery_attempt_counts, count_changes, activity, backlog_samples, metric_samples;
drop type event_status, message_type, event_delivery_status, quarantine_status;
