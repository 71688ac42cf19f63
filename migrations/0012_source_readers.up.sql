-- Whether an agent reads sources (all but those of `--mode retry`): such agents share the `workers` of a source. One of the version before does not say, and
-- counts.
-- blocks: reads and writes of agents

alter table agents add column reads_sources boolean not null default true;
