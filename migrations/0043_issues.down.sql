drop table issues;
