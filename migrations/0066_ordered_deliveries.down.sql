-- Each delivery is sent for itself.
update event_deliveries set next_attempt_at = now() where order_key is not null and status in ('scheduled', 'retry') and next_attempt_at is null;
drop table ordered_keys;
drop table ordered_deliveries;
alter table event_deliveries
  drop column order_key,
  add constraint event_deliveries_check1 check ((status in ('scheduled', 'retry')) = (next_attempt_at is not null)) not valid;
