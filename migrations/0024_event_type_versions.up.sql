-- Data of such an event, in the order in which it was written; null: none is known.
-- blocks: reads and writes of event_types
alter table event_types add column example json;

-- Agents know the event types of a project that rejects others, so new ones raise the version of the project.
create trigger config_inserted after insert on event_types referencing new table as changed for each statement execute function config_changed();
create trigger config_deleted  after delete on event_types referencing old table as changed for each statement execute function config_changed();
