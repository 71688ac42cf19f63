-- What was left out of an event is told no more.
alter table events drop column notes;
