-- Scopes of API keys.
-- blocks: reads and writes of api_keys, 0.2 s per million rows
alter table api_keys
  -- such as { events:write }: of the routes that its role allows, those that the key may use; null: all of them
  add column scopes text[],
  add constraint api_keys_scopes check (scopes is null or (type in ('personal', 'project') and cardinality(scopes) between 1 and 100));
