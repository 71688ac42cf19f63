import type pg from 'pg';

export const DAY_MS = 86_400_000;

/** From when on rows are kept, by the time of their message: the beginnings of days, in UTC. */
export interface Cutoffs {
  /** Of projects that say how many days they keep; those that were deleted keep nothing for longer than the instance. */
  readonly own: ReadonlyMap<string, Date>;
  /** The latest of all: whatever is younger is kept for everybody. */
  readonly youngest: Date;
  /** Of a project; of one that says nothing, and without a project, that of the instance. */
  of(project?: string): Date;
  /** Reads them once more, for the same moment: what projects say may have been changed. */
  again(): Promise<Cutoffs>;
}

/**
 * Reads how long projects keep what is finished. Cost: the table of projects.
 *
 * @param days what holds for projects that say nothing
 * @param now what counts as now; by default the time of the database
 */
export async function readCutoffs(client: pg.PoolClient, { days, now }: { days: number; now?: Date | undefined }): Promise<Cutoffs> {
  const { rows } = await client.query<{ now: Date; own: Readonly<Record<string, number>> | null }>(
    `select coalesce($1::timestamptz, now()) as now,
            (select json_object_agg(id, case when deleted_at is null then days else least(days, $2) end)
               from (select id, deleted_at, (config -> 'retention' ->> 'days')::integer as days from projects) p
              where days is not null) as own`,
    [now ?? null, days],
  );
  const { now: databaseNow, own: daysOf } = rows[0]!;
  const beginning = (ago: number) => new Date((Math.floor(databaseNow.getTime() / DAY_MS) - ago) * DAY_MS);
  const own = new Map(Object.entries(daysOf ?? {}).flatMap(([id, ago]) => (ago === days ? [] : [[id, beginning(ago)] as const])));
  const instance = beginning(days);
  return {
    own,
    youngest: new Date(Math.max(instance.getTime(), ...[...own.values()].map(Number))),
    of: (project) => (project === undefined ? undefined : own.get(project)) ?? instance,
    again: () => readCutoffs(client, { days, now: databaseNow }),
  };
}

/**
 * Whether a project keeps nothing of a day any more.
 *
 * @param project undefined: those that say nothing
 * @param day `2026-01-31`
 */
export function isExpired(times: Cutoffs, project: string | undefined, day: string): boolean {
  return Date.parse(day) < times.of(project).getTime();
}

/**
 * A condition on a time that it is of a day, written out, so that the planner sees which partitions to leave alone.
 *
 * @param day `2026-01-31`
 */
export function duringDay(column: string, day: string): string {
  return `${column} >= '${day}T00:00Z' and ${column} < '${new Date(Date.parse(day) + DAY_MS).toISOString()}'`;
}
