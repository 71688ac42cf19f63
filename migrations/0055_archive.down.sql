-- rebuilt: archive_failure
drop table archive_failure;
