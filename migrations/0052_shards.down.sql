-- rebuilt: shards
do $$
begin
  if exists (select from shards where name <> 'default') then
    raise exception 'there are other shards than the default one, and their events would be out of reach'
      using hint = 'Move their projects back with `gateway shards move`, and remove the shards.';
  end if;
end $$;
alter table projects drop column shard, drop column former_shards;
drop table shards;
