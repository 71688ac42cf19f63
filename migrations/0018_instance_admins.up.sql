-- Who may see what belongs to the instance. Until now only `gateway bootstrap` made users.
-- blocks: reads and writes of users, 12 s per million rows
alter table users add column is_instance_admin boolean not null default false;
update users set is_instance_admin = true;
