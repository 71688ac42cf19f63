alter table count_changes replica identity default;
