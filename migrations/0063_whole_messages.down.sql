-- Events lose key and attributes of their messages.
alter table quarantined_messages drop column message;
alter table events drop column message;
