alter table metric_samples alter column body set storage extended;
