drop trigger config_inserted on event_types;
drop trigger config_deleted on event_types;
alter table event_types drop column example;
