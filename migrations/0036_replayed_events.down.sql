alter table events drop column replayed;
