drop table audit_log;
drop table invitations;

delete from api_keys where type in ('session', 'portal');
drop index api_keys_user, api_keys_project;
alter table api_keys
  drop constraint api_keys_of,
  drop constraint api_keys_owner,
  drop column role,
  drop column owner_id,
  drop column last_used_at,
  add constraint api_keys_check check ((type = 'personal') = (user_id is not null)),
  add constraint api_keys_check1 check ((type = 'project') = (project_id is not null));
update organisation_members set role = (case when role in ('owner', 'admin') then 'admin' else 'member' end)::member_role;
