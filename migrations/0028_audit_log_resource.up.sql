-- What was done to one endpoint, source or other resource: `resourceId` of the audit log. Locks: audit_log, which changes of the configuration write, while it builds.
create index audit_log_resource on audit_log (organisation_id, resource_id, id) where resource_id is not null;
