-- What was done to one endpoint, source or other resource: `resourceId` of the audit log.
-- blocks: writes of audit_log, 1.9 s per million rows
create index audit_log_resource on audit_log (organisation_id, resource_id, id) where resource_id is not null;
