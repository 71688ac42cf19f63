-- blocks: reads and writes of subscriptions
alter table subscriptions add column is_disabled boolean not null default false;
