drop table project_fences;
