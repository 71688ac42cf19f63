-- A sample is stored as it is: it is written anew every few seconds, stays in memory, and to compress it took two of the two and a half milliseconds that
-- keeping it takes.
-- blocks: reads and writes of metric_samples

alter table metric_samples alter column body set storage external;
