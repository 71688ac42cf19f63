drop table backlog_samples;
