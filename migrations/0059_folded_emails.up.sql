-- Compares addresses without the case of ASCII letters only: lower(email) follows the rules of the database, and in a Turkish one I is no capital i.
-- Fails if the database has two users whose addresses differ in case alone; rename one.
-- plane: control
-- blocks: writes of users, 2 s per million rows
-- blocks: writes of invitations, 2 s per million rows

create unique index users_email_folded on users (lower(email collate "C"));
create index invitations_email_folded on invitations (lower(email collate "C")) where accepted_at is null and revoked_at is null;
