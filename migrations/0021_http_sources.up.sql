-- Sources of the type http: providers post their webhooks to /ingest/<mask_id> of the server.
-- Their `pub_sub` is { "type": "http" }: an agent of the version before looks for a plugin of that name, finds none, and says so in its health.
-- blocks: reads and writes of sources, 0.5 s per million rows

alter table sources
  add column mask_id text unique,
  -- { "verifier": {...}, ... }, secret fields of the verifier sealed
  add column http    jsonb,
  drop constraint sources_type_check,
  add constraint sources_type_check check (type in ('pub_sub', 'http')),
  add constraint sources_http_check check ((type = 'http') = (http is not null) and (type = 'http') = (mask_id is not null));
