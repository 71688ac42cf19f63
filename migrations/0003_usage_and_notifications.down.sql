drop table notifications;
drop type notification_status;
drop type notification_kind;
drop table usage_days;
