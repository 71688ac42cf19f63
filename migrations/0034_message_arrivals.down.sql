drop table message_arrivals;
