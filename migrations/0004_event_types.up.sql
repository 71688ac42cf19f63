-- The event types of a project, as its API description announces them: names with the schema of their data. A new table alone: nothing that
-- runs is locked. Routing does not read it, so a write to it does not raise config_version.
-- blocks: writes of projects

create table event_types (
  project_id    uuid not null references projects,
  id            uuid not null,
  name          text not null check (name <> ''),
  description   text not null default '',
  -- JSON Schema 2020-12, in the order in which it was written; null: nothing is known of the data
  json_schema   json,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  -- since when its description says that it is deprecated
  deprecated_at timestamptz,
  primary key (project_id, id),
  unique (project_id, name)
);
