drop index users_email_folded, invitations_email_folded;
