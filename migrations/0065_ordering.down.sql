alter table subscriptions drop column ordering;
alter table endpoints drop column ordering_park_after_seconds, drop column ordering_failure, drop column ordering;
