-- People who sign in with an OpenID Connect provider.
-- blocks: writes of invitations, 0.8 s per million rows
-- blocks: writes of users

create table user_identities (
  -- what the provider calls itself and the person: neither ever changes
  issuer     text not null,
  subject    text not null,
  user_id    uuid not null references users on delete cascade,
  created_at timestamptz not null default now(),
  primary key (issuer, subject),
  -- an email address that the provider gives to somebody else does not open the account
  unique (user_id, issuer)
);

create index invitations_email on invitations (lower(email)) where accepted_at is null and revoked_at is null;
