drop index events_by_outcome;
