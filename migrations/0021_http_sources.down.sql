-- HTTP sources are deleted: what providers post to them is not found.
alter table sources drop constraint sources_http_check;
update sources set type = 'pub_sub', deleted_at = coalesce(deleted_at, now()) where type = 'http';
alter table sources
  drop column mask_id, drop column http,
  drop constraint sources_type_check,
  add constraint sources_type_check check (type in ('pub_sub'));
