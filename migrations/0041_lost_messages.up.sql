-- no transaction
-- A kind of notification: a broker deleted messages of a source before they were read.
-- blocks: nothing
alter type notification_kind add value if not exists 'source_lost';
