-- Their receivers read batches, and would be sent single events.
update endpoints set status = 'inactive', status_reason = 'This version sends no batches.' where batch is not null;
alter table endpoints drop column batch;
