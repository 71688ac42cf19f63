alter table projects drop column move_number;
