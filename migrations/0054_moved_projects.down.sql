drop table moved_projects;
