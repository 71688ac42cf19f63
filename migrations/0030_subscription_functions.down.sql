-- Endpoints get the data of events as it is.
alter table event_deliveries drop column transformed_data;
alter table subscriptions drop column function;
