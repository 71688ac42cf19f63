-- Without the column a key with scopes could do all that its role allows.
update api_keys set revoked_at = coalesce(revoked_at, now()) where scopes is not null;
alter table api_keys drop column scopes;
