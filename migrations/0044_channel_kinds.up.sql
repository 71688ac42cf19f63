-- no transaction
-- Kinds of notifications: the test of a channel, and an endpoint that will be disabled because nothing but failures comes from it.
-- blocks: nothing
alter type notification_kind add value if not exists 'channel_test';
alter type notification_kind add value if not exists 'endpoint_disabling';
