-- Lists the events that reached no endpoint, by why. Routed and pending events are not in the index, so that its cost is theirs alone.
-- blocks: writes of events, 0.2 s per million rows

create index events_by_outcome on events (project_id, outcome, id) where outcome <> 'routed';
