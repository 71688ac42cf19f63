-- Whether the archive can be written, so that every server can say so. It has a row while the archive fails.
-- plane: data
-- blocks: nothing

create table archive_failure (
  singleton boolean primary key default true check (singleton),
  since     timestamptz not null default now(),
  failed_at timestamptz not null default now(),
  reason    text not null
);
