update api_keys k set organisation_id = (select m.organisation_id from organisation_members m where m.user_id = k.user_id order by 1 limit 1)
  where organisation_id is null;
delete from api_keys where organisation_id is null;
alter table api_keys alter column organisation_id set not null;
alter table users drop column email_verified_at;
