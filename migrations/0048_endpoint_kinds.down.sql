delete from notifications where kind::text in ('endpoint_breaker', 'endpoint_exhausted');
alter type notification_kind rename to notification_kind_48;
do $$
begin
  execute (select format('create type notification_kind as enum (%s)', string_agg(quote_literal(enumlabel), ', ' order by enumsortorder))
           from pg_enum where enumtypid = 'notification_kind_48'::regtype and enumlabel not in ('endpoint_breaker', 'endpoint_exhausted'));
end $$;
alter table notifications alter column kind type notification_kind using kind::text::notification_kind;
drop type notification_kind_48;
