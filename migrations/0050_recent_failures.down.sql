drop index activity_failures;
drop index endpoints_not_active;
