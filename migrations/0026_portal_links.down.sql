alter table api_keys drop constraint api_keys_portal;
drop index api_keys_by_owner;
drop index api_keys_valid;
drop index api_keys_of_project;
