-- { client_cert: PEM, client_key: sealed PEM, expires_at }: what the gateway shows to an endpoint over TLS; null: nothing
-- blocks: reads and writes of endpoints
alter table endpoints add column mtls_client_cert jsonb;
