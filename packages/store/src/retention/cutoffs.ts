import type { Querier } from '../postgres/connection.js';

export const DAY_MS = 86_400_000;

/** Rows expire with messages older than their project's cutoff, the start of a UTC day. */
export interface Cutoffs {
  /**
   * Projects with their own retention. A deleted one keeps nothing longer than the instance does.
   */
  readonly own: ReadonlyMap<string, Date>;
  readonly deletedProjects: ReadonlySet<string>;
  readonly youngest: Date;
  /** Defaults to that of the instance. */
  of(project?: string): Date;
  /** Reads the settings again, for the same moment. */
  again(): Promise<Cutoffs>;
}

/**
 * As of `now`, by default the database's time. `days` is the instance's retention. Scans the
 * projects, without a lock.
 */
export async function readCutoffs(
  control: Querier,
  { days, now }: { days: number; now?: Date | undefined },
): Promise<Cutoffs> {
  const { rows } = await control.query<{
    now: Date;
    own: Readonly<Record<string, number>> | null;
    deleted: readonly string[];
  }>(
    `select coalesce($1::timestamptz, now()) as now, array(select id from projects where deleted_at is not null) as deleted,
            (select json_object_agg(id, case when deleted_at is null then days else least(days, $2) end)
               from (select id, deleted_at, (config -> 'retention' ->> 'days')::integer as days from projects) p
              where days is not null) as own`,
    [now ?? null, days],
  );
  const { now: databaseNow, own: daysOf, deleted } = rows[0]!;
  const beginning = (ago: number) =>
    new Date((Math.floor(databaseNow.getTime() / DAY_MS) - ago) * DAY_MS);
  const own = new Map(
    Object.entries(daysOf ?? {}).flatMap(([id, ago]) =>
      ago === days ? [] : [[id, beginning(ago)] as const],
    ),
  );
  const instance = beginning(days);
  return {
    own,
    deletedProjects: new Set(deleted),
    youngest: new Date(Math.max(instance.getTime(), ...[...own.values()].map(Number))),
    of: (project) => (project === undefined ? undefined : own.get(project)) ?? instance,
    again: () => readCutoffs(control, { days, now: databaseNow }),
  };
}

/** If `project` is undefined, for projects without their own retention. */
export function isExpired(times: Cutoffs, project: string | undefined, day: string): boolean {
  return Date.parse(day) < times.of(project).getTime();
}

/** Literals, so that the planner can prune partitions. */
export function duringDay(column: string, day: string): string {
  return `${column} >= '${day}T00:00Z' and ${column} < '${new Date(Date.parse(day) + DAY_MS).toISOString()}'`;
}
