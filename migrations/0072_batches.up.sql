-- Endpoints that take several events in one request.
-- plane: control
-- blocks: reads and writes of endpoints
alter table endpoints
  -- { max_events, max_bytes, max_wait_ms }; null: each event has a request of its own
  add column batch jsonb;
