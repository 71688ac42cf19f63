-- Loses the edits; the bytes as they came stay.
drop index quarantined_messages_waiting;
alter table quarantined_messages drop column edited_at, drop column edited_raw;
