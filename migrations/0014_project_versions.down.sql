-- rebuilt: project_versions
-- Every write makes every agent read everything again.
do $$ declare t text; begin
  foreach t in array array['projects', 'endpoints', 'subscriptions', 'sources'] loop
    execute format('drop trigger config_inserted on %I', t);
    execute format('drop trigger config_updated on %I', t);
    execute format('drop trigger config_deleted on %I', t);
    execute format('create trigger config_changed after insert or update or delete on %I for each statement execute function config_changed()', t);
  end loop;
end $$;
create or replace function config_changed() returns trigger language plpgsql as $$
begin
  update config_version set version = version + 1;
  perform pg_notify('gateway_config', '');
  return null;
end $$;
drop index endpoints_live;
drop index subscriptions_live;
drop index sources_live;
drop table project_versions;
