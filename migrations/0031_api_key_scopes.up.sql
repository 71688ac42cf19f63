-- Scopes of API keys. Locks: readers and writers of api_keys, a small table, for a moment.
alter table api_keys
  -- such as { events:write }: of the routes that its role allows, those that the key may use; null: all of them
  add column scopes text[],
  add constraint api_keys_scopes check (scopes is null or (type in ('personal', 'project') and cardinality(scopes) between 1 and 100));
