-- Who uses the gateway, and what they set up. Small tables, read into the memory of every agent.
-- Every write to projects, endpoints, subscriptions or sources raises config_version and notifies, so that agents follow at once.
-- blocks: nothing

create type project_type as enum ('outgoing', 'incoming');
create type endpoint_status as enum ('active', 'inactive', 'paused');
create type member_role as enum ('admin', 'member');
create type api_key_type as enum ('personal', 'project');

create table organisations (
  id         uuid primary key,
  name       text not null check (name <> ''),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table users (
  id            uuid primary key,
  email         text not null check (email <> ''),
  first_name    text not null,
  last_name     text not null,
  password_hash text not null,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now()
);
create unique index users_email on users (lower(email));

create table organisation_members (
  organisation_id uuid not null references organisations on delete cascade,
  user_id         uuid not null references users on delete cascade,
  role            member_role not null,
  created_at      timestamptz not null default now(),
  primary key (organisation_id, user_id)
);
create index organisation_members_user on organisation_members (user_id);

create table projects (
  id              uuid primary key,
  organisation_id uuid not null references organisations,
  name            text not null check (name <> ''),
  type            project_type not null,
  -- { "strategy": {...}, "signature": {...} }: see the project record in docs/reference
  config          jsonb not null default '{}',
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  deleted_at      timestamptz
);
create index projects_organisation on projects (organisation_id);

-- The secret part of a key is random, so one round of SHA-256 keeps it; it is looked up by its public part.
create table api_keys (
  id              uuid primary key,
  type            api_key_type not null,
  organisation_id uuid not null references organisations on delete cascade,
  user_id         uuid references users on delete cascade,
  project_id      uuid references projects on delete cascade,
  name            text not null,
  mask            text not null unique,
  hash            bytea not null,
  created_at      timestamptz not null default now(),
  expires_at      timestamptz,
  revoked_at      timestamptz,
  check ((type = 'personal') = (user_id is not null)),
  check ((type = 'project') = (project_id is not null))
);

create table endpoints (
  project_id     uuid not null references projects,
  id             uuid not null,
  name           text not null check (name <> ''),
  url            text not null,
  owner_id       text,
  description    text not null default '',
  status         endpoint_status not null default 'active',
  -- why it is not active, for a person
  status_reason  text,
  -- [{ "id", "value" (sealed), "created_at", "expires_at" }], newest first
  secrets        jsonb not null,
  -- { "type": "api_key" | "basic" | "bearer", ... }, values sealed
  authentication jsonb,
  timeout_ms     integer not null default 10000 check (timeout_ms between 100 and 120000),
  -- how many deliveries may be under way at a time, per agent; null: the agent's default
  concurrency    integer check (concurrency > 0),
  -- { "type", "duration", "retry_count", "max_seconds" }; null: the project's
  strategy       jsonb,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  deleted_at     timestamptz,
  primary key (project_id, id)
);
create index endpoints_owner on endpoints (project_id, owner_id) where owner_id is not null and deleted_at is null;

create table subscriptions (
  project_id  uuid not null references projects,
  id          uuid not null,
  name        text not null check (name <> ''),
  endpoint_id uuid not null,
  event_types text[] not null default '{*}' check (cardinality(event_types) > 0),
  -- { "body": {...}, "headers": {...} }
  filter      jsonb,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  deleted_at  timestamptz,
  primary key (project_id, id),
  foreign key (project_id, endpoint_id) references endpoints
);

create table sources (
  project_id    uuid not null references projects,
  id            uuid not null,
  name          text not null check (name <> ''),
  type          text not null check (type in ('pub_sub')),
  -- { "type": "kafka", "workers": 1, "kafka": {...} }, secret fields sealed
  pub_sub       jsonb not null,
  body_function text,
  is_disabled   boolean not null default false,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  deleted_at    timestamptz,
  primary key (project_id, id)
);

-- One row; agents compare the number instead of reading everything again.
create table config_version (
  singleton boolean primary key default true check (singleton),
  version   bigint not null default 0
);
insert into config_version default values;

create function config_changed() returns trigger language plpgsql as $$
begin
  update config_version set version = version + 1;
  perform pg_notify('gateway_config', '');
  return null;
end $$;
create trigger config_changed after insert or update or delete on projects      for each statement execute function config_changed();
create trigger config_changed after insert or update or delete on endpoints     for each statement execute function config_changed();
create trigger config_changed after insert or update or delete on subscriptions for each statement execute function config_changed();
create trigger config_changed after insert or update or delete on sources       for each statement execute function config_changed();
