-- Endpoints are sent to without a limit.
alter table endpoints drop column rate_limit, drop column rate_limit_duration;
