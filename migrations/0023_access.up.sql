-- Owners, sessions and portal links as kinds of API keys, invitations, and the audit log.
-- blocks: reads and writes of api_keys, 0.9 s per million rows
-- blocks: writes of organisations, users

-- Every admin so far made the organisation.
update organisation_members set role = 'owner' where role = 'admin';

alter table api_keys
  drop constraint api_keys_check,
  drop constraint api_keys_check1,
  -- what the key may do; null: what its user may, or everything in its project
  add column role         member_role,
  -- of a portal link: whose endpoints it shows
  add column owner_id     text,
  add column last_used_at timestamptz,
  -- of users: personal keys and sessions; of projects: their keys and portal links
  add constraint api_keys_of check ((user_id is not null) <> (project_id is not null)),
  add constraint api_keys_owner check (owner_id is null or project_id is not null);
create index api_keys_user on api_keys (user_id, id) where user_id is not null;
create index api_keys_project on api_keys (project_id, id) where project_id is not null;

create table invitations (
  organisation_id uuid not null references organisations on delete cascade,
  id              uuid not null,
  email           text not null check (email <> ''),
  role            member_role not null,
  mask            text not null unique,
  hash            bytea not null,
  invited_by      uuid references users on delete set null,
  created_at      timestamptz not null default now(),
  expires_at      timestamptz not null,
  accepted_at     timestamptz,
  revoked_at      timestamptz,
  primary key (organisation_id, id)
);

create table audit_log (
  organisation_id uuid not null references organisations on delete cascade,
  id              uuid not null,
  project_id      uuid,
  actor_type      text not null check (actor_type in ('user', 'project', 'portal', 'process')),
  -- a user, a key of a project, or the digest of a credential of the process
  actor_id        text not null,
  -- the key or session that the request carried
  key_id          uuid,
  action          text not null,
  resource_id     text,
  -- { "<field>": { "before", "after" } }, without secrets
  changes         jsonb not null,
  address         text,
  request_id      uuid not null,
  primary key (organisation_id, id)
);
create index audit_log_project on audit_log (organisation_id, project_id, id) where project_id is not null;
-- for the deletion of old entries
create index audit_log_id on audit_log (id);
