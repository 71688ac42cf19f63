-- An endpoint may say how many requests it wants at most. Agents of the schema before it send as fast as they did.
-- blocks: reads and writes of endpoints, 0.3 s per million rows

alter table endpoints
  -- requests within rate_limit_duration; 0: no limit, whatever the project says; null: the project's
  add column rate_limit          integer check (rate_limit >= 0),
  -- seconds; null: one
  add column rate_limit_duration integer check (rate_limit_duration between 1 and 86400);
