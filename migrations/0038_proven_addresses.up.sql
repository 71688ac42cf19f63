-- Whether the address of an account is known to be that of its user.
-- blocks: reads and writes of users, 12 s per million rows
-- blocks: reads and writes of api_keys, 12 s per million rows
alter table users
  -- when somebody proved it: by an OpenID Connect provider, or the operator by `gateway bootstrap`; null: whoever invited the address may have chosen the password
  add column email_verified_at timestamptz;
-- `gateway bootstrap` made the former, the provider the latter.
update users set email_verified_at = now() where is_instance_admin or password_hash = '';

-- Keys of users belong to none: deleting one of their organisations would end them.
alter table api_keys alter column organisation_id drop not null;
update api_keys set organisation_id = null where user_id is not null;
