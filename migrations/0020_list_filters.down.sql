drop index endpoints_by_owner;
drop index quarantined_messages_by_code;
drop index quarantined_messages_by_source;
drop index event_deliveries_by_type;
