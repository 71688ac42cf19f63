-- What the health report of a project looks for, so that its cost follows what is wrong and not the number of endpoints.
-- blocks: writes of activity, 0.2 s per million rows
-- blocks: writes of endpoints, 0.2 s per million rows

create index activity_failures on activity (project_id, at) where kind = 'attempt' and status = 'failure';
create index endpoints_not_active on endpoints (project_id, status) where deleted_at is null and status <> 'active';
