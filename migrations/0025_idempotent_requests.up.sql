-- Requests with an Idempotency-Key that create something, kept for a day: who repeats one gets its answer.
-- blocks: nothing
create table idempotent_requests (
  -- the key, session or portal link that sent it, or the digest of a credential of the process
  caller_id    text not null,
  key          text not null,
  -- HMAC of what was asked: secrets in it cannot be guessed
  request_hash bytea not null,
  -- sealed; null: it is running, or was interrupted
  answer       text,
  created_at   timestamptz not null default now(),
  primary key (caller_id, key)
);
create index idempotent_requests_caller on idempotent_requests (caller_id, created_at);
-- for the deletion of old ones
create index idempotent_requests_created on idempotent_requests (created_at);
