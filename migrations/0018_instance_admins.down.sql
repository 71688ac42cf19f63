alter table users drop column is_instance_admin;
