delete from notifications where kind::text in ('channel_test', 'endpoint_disabling');
alter type notification_kind rename to notification_kind_44;
do $$
begin
  execute (select format('create type notification_kind as enum (%s)', string_agg(quote_literal(enumlabel), ', ' order by enumsortorder))
           from pg_enum where enumtypid = 'notification_kind_44'::regtype and enumlabel not in ('channel_test', 'endpoint_disabling'));
end $$;
alter table notifications alter column kind type notification_kind using kind::text::notification_kind;
drop type notification_kind_44;
