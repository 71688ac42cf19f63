-- How requests to an endpoint are signed, and headers that each of them has.
-- plane: control
-- blocks: reads and writes of endpoints
alter table endpoints
  -- [hmac, ed25519, rfc9421-hmac, rfc9421-ed25519]; null: hmac
  add column signatures jsonb,
  -- what the names of the signature headers begin with; null: webhook
  add column signature_prefix text,
  -- [{ name, value: sealed }]
  add column headers jsonb;
