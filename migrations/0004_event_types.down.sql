drop table event_types;
