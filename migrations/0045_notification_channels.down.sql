drop table endpoint_outages;
drop trigger ended_notification on notifications;
drop trigger raised_notification on notifications;
drop function queue_channel_notification();
drop table channel_notifications;
drop table notification_channels;
