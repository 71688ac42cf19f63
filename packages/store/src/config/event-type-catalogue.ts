import type { Pool } from 'pg';

/** The event types of projects that reject others (`config.unknown_event_types`), remembered for a moment. */
export interface EventTypeCatalogue {
  /** The first of these event types that the project rejects; undefined when it accepts all of them. */
  firstUnknown(projectId: string, eventTypes: readonly string[]): Promise<string | undefined>;
  /** Call it after a change of the event types of a project or of what it rejects, in this process. */
  forget(projectId: string): void;
}

const KEPT_MS = 1_000;
/** An unknown type may be a new one: it is looked up again, but only so often. */
const ASKED_AGAIN_MS = 100;
/** The oldest are dropped beyond it. */
const PROJECTS_MAX = 1_000;

interface Entry {
  /** Null: the project accepts all. */
  readonly names: Promise<ReadonlySet<string> | null>;
  readonly atMs: number;
}

/** A catalogue that reads the names of a project once a second at most, or ten times while unknown types come. */
export function eventTypeCatalogue(pool: Pool): EventTypeCatalogue {
  const entries = new Map<string, Entry>();

  function namesOf(projectId: string, maxAgeMs: number): Entry['names'] {
    const nowMs = performance.now();
    const known = entries.get(projectId);
    if (known && nowMs - known.atMs < maxAgeMs) return known.names;
    const names = readNames(pool, projectId);
    entries.delete(projectId);
    entries.set(projectId, { names, atMs: nowMs });
    names.catch(() => entries.delete(projectId));
    const [oldest] = entries.keys();
    if (entries.size > PROJECTS_MAX && oldest !== undefined) entries.delete(oldest);
    return names;
  }

  return {
    async firstUnknown(projectId, eventTypes) {
      for (const maxAgeMs of [KEPT_MS, ASKED_AGAIN_MS]) {
        const names = await namesOf(projectId, maxAgeMs);
        const unknown = names ? eventTypes.find((it) => !names.has(it)) : undefined;
        if (unknown === undefined || maxAgeMs === ASKED_AGAIN_MS) return unknown;
      }
      return undefined;
    },
    forget: (projectId) => void entries.delete(projectId),
  };
}

/** By the unique index of names. No lock. */
async function readNames(pool: Pool, projectId: string): Promise<ReadonlySet<string> | null> {
  const { rows } = await pool.query<{ names: string[] | null }>({
    name: 'event-type-names',
    text: `select case when config ->> 'unknown_event_types' = 'reject' then array(select name from event_types where project_id = p.id) end as names
           from projects p where id = $1`,
    values: [projectId],
  });
  const names = rows[0]?.names ?? null;
  return names && new Set(names);
}
