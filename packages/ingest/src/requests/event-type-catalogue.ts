import { readEventTypeNames } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';

export interface EventTypeCatalogue {
  /** The first event type that the project rejects, or undefined if it accepts them all. */
  firstUnknown(projectId: string, eventTypes: readonly string[]): Promise<string | undefined>;
  /** Call it when this process changes the project's event types or `unknown_event_types`. */
  forget(projectId: string): void;
}

const KEPT_MS = 1_000;
/**
 * When an unknown event type arrives, names older than this are read again, since it may be new.
 */
const ASKED_AGAIN_MS = 100;
/** The oldest are evicted. */
const PROJECTS_MAX = 1_000;

interface Entry {
  /** Null if the project accepts unknown event types. */
  readonly names: Promise<ReadonlySet<string> | null>;
  readonly atMs: number;
}

/**
 * Reads a project's names at most once a second, or ten times a second while unknown types arrive.
 */
export function eventTypeCatalogue(pool: Database['pool']): EventTypeCatalogue {
  const entries = new Map<string, Entry>();

  function namesOf(projectId: string, maxAgeMs: number): Entry['names'] {
    const nowMs = performance.now();
    const known = entries.get(projectId);
    if (known && nowMs - known.atMs < maxAgeMs) return known.names;
    const names = readEventTypeNames(pool, projectId);
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
