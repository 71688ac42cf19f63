-- Agents read the projects that changed, not everything. Every write to a project, or to its endpoints, subscriptions and sources, notes the value of
-- config_version that it raised, by project; a write that touches no row raises nothing. config_version stays locked until the commit, so that versions become
-- visible in their order: an agent that has read up to one misses none below it. A table of its own, as updates of projects would lock in another order.
-- blocks: reads and writes of projects, 8 s per million rows
-- blocks: reads and writes of endpoints, 1 s per million rows
-- blocks: reads and writes of subscriptions, 1 s per million rows
-- blocks: reads and writes of sources, 1 s per million rows

create table project_versions (
  -- of no foreign key: agents drop a project whose row is gone
  project_id uuid primary key,
  version    bigint not null
);
create index project_versions_version on project_versions (version, project_id);
insert into project_versions select p.id, v.version from projects p, config_version v;

-- Deleted rows stay in the tables, in any number.
create index endpoints_live on endpoints (project_id, id) where deleted_at is null;
create index subscriptions_live on subscriptions (project_id, id) where deleted_at is null;
create index sources_live on sources (project_id, id) where deleted_at is null;

create or replace function config_changed() returns trigger language plpgsql as $$
declare
  raised bigint;
begin
  if not exists (select from changed) then
    return null;
  end if;
  update config_version set version = version + 1 returning version into raised;
  if tg_table_name = 'projects' then
    insert into project_versions select id, raised from changed
      on conflict (project_id) do update set version = excluded.version;
  else
    insert into project_versions select distinct project_id, raised from changed
      on conflict (project_id) do update set version = excluded.version;
  end if;
  perform pg_notify('gateway_config', '');
  return null;
end $$;

-- A trigger that sees the rows of its statement has one kind of statement.
drop trigger config_changed on projects;
drop trigger config_changed on endpoints;
drop trigger config_changed on subscriptions;
drop trigger config_changed on sources;
create trigger config_inserted after insert on projects      referencing new table as changed for each statement execute function config_changed();
create trigger config_updated  after update on projects      referencing new table as changed for each statement execute function config_changed();
create trigger config_deleted  after delete on projects      referencing old table as changed for each statement execute function config_changed();
create trigger config_inserted after insert on endpoints     referencing new table as changed for each statement execute function config_changed();
create trigger config_updated  after update on endpoints     referencing new table as changed for each statement execute function config_changed();
create trigger config_deleted  after delete on endpoints     referencing old table as changed for each statement execute function config_changed();
create trigger config_inserted after insert on subscriptions referencing new table as changed for each statement execute function config_changed();
create trigger config_updated  after update on subscriptions referencing new table as changed for each statement execute function config_changed();
create trigger config_deleted  after delete on subscriptions referencing old table as changed for each statement execute function config_changed();
create trigger config_inserted after insert on sources       referencing new table as changed for each statement execute function config_changed();
create trigger config_updated  after update on sources       referencing new table as changed for each statement execute function config_changed();
create trigger config_deleted  after delete on sources       referencing old table as changed for each statement execute function config_changed();
