-- Agents look for deliveries that are held though their endpoint is not paused, and for those of endpoints that were deleted lately. Only held deliveries are in the
-- first index, so that its cost is theirs.
-- blocks: writes of event_deliveries, 0.1 s per million rows
-- blocks: writes of endpoints, 0.1 s per million rows

create index event_deliveries_held on event_deliveries (project_id, endpoint_id) where next_attempt_at = 'infinity';
create index endpoints_deleted on endpoints (deleted_at) where deleted_at is not null;
