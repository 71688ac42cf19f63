-- A shard is a database and a schema in it with the data plane of some projects. The default one is the database of the settings.
-- blocks: reads and writes of projects, 0.1 s per million rows

create table shards (
  name         text primary key,
  -- null: the database of the settings database.*
  host         text,
  port         integer,
  username     text,
  -- sealed
  password     text,
  database     text,
  options      text,
  -- null: the role's search_path
  schema_name  text,
  is_citus     boolean not null default false,
  -- no new project is assigned to it
  is_draining  boolean not null default false,
  created_at   timestamptz not null default now(),
  check ((host is null) = (port is null and username is null and password is null and database is null and options is null))
);
insert into shards (name) values ('default');

alter table projects
  add column shard         text not null default 'default' references shards (name),
  -- shards with events from before a move, the newest first
  add column former_shards text[] not null default '{}';
