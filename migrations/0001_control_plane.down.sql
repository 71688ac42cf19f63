-- rebuilt: config_version
drop table config_version, sources, subscriptions, endpoints, api_keys, projects, organisation_members, users, organisations cascade;
drop function config_changed();
drop type api_key_type, member_role, endpoint_status, project_type;
