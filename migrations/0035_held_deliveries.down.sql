drop index endpoints_deleted;
drop index event_deliveries_held;
