-- A sample is stored as it is: it is written anew every few seconds, stays in memory, and to compress it took two of the two and a half milliseconds that
-- keeping it takes.
-- Locks: metric_samples, for a moment. A sample that is under way is waited for.

alter table metric_samples alter column body set storage external;
