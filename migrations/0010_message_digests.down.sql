-- A message at the coordinates and time of another one is again taken for that one.
alter table events drop column digest;
