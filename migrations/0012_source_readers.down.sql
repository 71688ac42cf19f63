-- Each agent runs all `workers` of a source again.
alter table agents drop column reads_sources;
