drop index invitations_email;
drop table user_identities;
