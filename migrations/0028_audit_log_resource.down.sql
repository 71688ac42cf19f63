drop index audit_log_resource;
