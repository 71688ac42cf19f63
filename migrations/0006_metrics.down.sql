-- rebuilt: metric_samples, count_changes, delivery_attempt_counts, event_delivery_counts, event_counts
-- Loses the counts; the rows that were counted stay.
drop function recount_finished();
drop table metric_samples, count_changes, delivery_attempt_counts, event_delivery_counts, event_counts;
alter table event_deliveries drop column event_type, drop column source_id, drop column traceparent;
