-- The table has no key, so `create publication … for all tables` made each delete from it fail, and counts stopped. Postgres writes whole rows of
-- it to the log for subscribers, if there are any.
-- plane: data
-- blocks: reads and writes of count_changes

alter table count_changes replica identity full;
