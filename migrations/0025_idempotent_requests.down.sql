drop table idempotent_requests;
