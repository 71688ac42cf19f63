-- no transaction
-- A value of an enum can be used only after the transaction that adds it.
-- Roles that may less or more than admins and members, sessions and portal links.
-- blocks: nothing

alter type member_role add value if not exists 'viewer' before 'admin';
alter type member_role add value if not exists 'owner';
alter type api_key_type add value if not exists 'session';
alter type api_key_type add value if not exists 'portal';
