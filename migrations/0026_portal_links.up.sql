-- Portal links are many: lists and counts of the keys of a project read those of one kind, and links are found by their owner.
-- blocks: reads and writes of api_keys, 1.8 s per million rows

create index api_keys_of_project on api_keys (project_id, type, id) where project_id is not null;
create index api_keys_valid on api_keys (project_id, type, expires_at) where project_id is not null and revoked_at is null;
create index api_keys_by_owner on api_keys (project_id, owner_id, id) where owner_id is not null;
-- A link reads, or manages endpoints as a member does.
alter table api_keys add constraint api_keys_portal check (type <> 'portal' or (owner_id is not null and expires_at is not null and role in ('viewer', 'member')));
