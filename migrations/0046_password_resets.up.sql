-- Requests of users who forgot their password, and the links with which they choose another one.
-- blocks: writes of users

create table password_resets (
  id           uuid primary key,
  user_id      uuid not null references users on delete cascade,
  created_at   timestamptz not null default now(),
  expires_at   timestamptz not null,
  used_at      timestamptz,
  -- of the token, which is stored nowhere; null until an agent has made one and mails it
  mask         text unique,
  hash         bytea,
  -- when an agent may mail it (again); null: it was mailed, or an operator has it
  next_mail_at timestamptz,
  -- the URL to which the mail adds the token
  link         text,
  check ((mask is null) = (hash is null))
);
create index password_resets_user on password_resets (user_id, created_at);
create index password_resets_mail on password_resets (next_mail_at) where next_mail_at is not null;
