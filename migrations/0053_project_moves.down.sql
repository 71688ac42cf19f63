alter table projects drop column moved_at;
