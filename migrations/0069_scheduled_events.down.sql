drop table scheduled_events;
