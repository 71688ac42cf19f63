alter table subscriptions drop column is_disabled;
