alter table api_keys drop constraint api_keys_check, drop constraint api_keys_check1;
alter type api_key_type rename to api_key_type_4;
create type api_key_type as enum ('personal', 'project');
alter table api_keys alter column type type api_key_type using type::text::api_key_type;
drop type api_key_type_4;
alter table api_keys
  add constraint api_keys_check check ((type = 'personal') = (user_id is not null)),
  add constraint api_keys_check1 check ((type = 'project') = (project_id is not null));

alter type member_role rename to member_role_4;
create type member_role as enum ('admin', 'member');
alter table organisation_members alter column role type member_role using role::text::member_role;
drop type member_role_4;
