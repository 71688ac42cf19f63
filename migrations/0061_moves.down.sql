drop table project_moves;
