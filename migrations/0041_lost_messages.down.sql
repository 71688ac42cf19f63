delete from notifications where kind = 'source_lost';
alter type notification_kind rename to notification_kind_40;
create type notification_kind as enum ('endpoint_disabled', 'endpoint_failing', 'source_failing', 'licence_expiring', 'licence_expired');
alter table notifications alter column kind type notification_kind using kind::text::notification_kind;
drop type notification_kind_40;
