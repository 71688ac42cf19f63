alter table moved_projects drop column move_number;
