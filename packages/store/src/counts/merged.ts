import { ENDPOINTS_LISTED, type EndpointTroubles, type ProjectStates } from './health.js';
import {
  SUMMARY_MAX,
  type Activity,
  type EndpointActivity,
  type Latencies,
  type ProjectSummary,
} from './activity.js';
import type { BacklogStep } from './backlog.js';

/*
 * The facts of a project that was moved are on several shards, whose facts come in the order of its
 * history: first those of the shard that takes new events. With one shard, they stay as they are.
 */

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);
const upToMax = (numbers: readonly number[]): number => Math.min(SUMMARY_MAX, sum(numbers));

/** Returns the highest of the numbers that are not null, or null. */
function highest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((n) => n !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** Returns the earliest of the times that are not null, or null. */
function earliest(times: readonly (Date | null)[]): Date | null {
  return times.reduce((first, at) => (first && (!at || first <= at) ? first : at), null);
}

function latest(times: readonly (Date | null)[]): Date | null {
  return times.reduce((last, at) => (last && (!at || last >= at) ? last : at), null);
}

/** Adds up what waits. The latencies are those of the newest shard with deliveries. */
export function mergeSummaries(parts: readonly ProjectSummary[]): ProjectSummary {
  const [first, ...others] = parts;
  if (others.length === 0) return first!;
  return {
    ...first!,
    pending_events: upToMax(parts.map((it) => it.pending_events)),
    oldest_pending_seconds: highest(parts.map((it) => it.oldest_pending_seconds)),
    waiting_deliveries: upToMax(parts.map((it) => it.waiting_deliveries)),
    held_deliveries: upToMax(parts.map((it) => it.held_deliveries)),
    processing_deliveries: upToMax(parts.map((it) => it.processing_deliveries)),
    quarantined_messages: upToMax(parts.map((it) => it.quarantined_messages)),
    latency_ms: parts.find((it) => it.latency_ms !== null)?.latency_ms ?? null,
  };
}

/** Adds up what waits. The agents are those of the shard that takes new events. */
export function mergeStates(parts: readonly ProjectStates[]): ProjectStates {
  const [first, ...others] = parts;
  if (others.length === 0) return first!;
  return {
    ...first!,
    has_traffic: parts.some((it) => it.has_traffic),
    pending_events: upToMax(parts.map((it) => it.pending_events)),
    oldest_pending_seconds: highest(parts.map((it) => it.oldest_pending_seconds)),
    due_deliveries: upToMax(parts.map((it) => it.due_deliveries)),
    oldest_due_seconds: highest(parts.map((it) => it.oldest_due_seconds)),
    held_deliveries: upToMax(parts.map((it) => it.held_deliveries)),
    quarantined_messages: upToMax(parts.map((it) => it.quarantined_messages)),
    quarantined_since: earliest(parts.map((it) => it.quarantined_since)),
  };
}

/** Returns the troubles of each endpoint, those of the newest shard if it has some on several. */
export function mergeTroubles(parts: readonly EndpointTroubles[]): EndpointTroubles {
  const [first, ...others] = parts;
  if (others.length === 0) return first!;
  const byId = new Map(
    parts.toReversed().flatMap(({ content }) => content.map((it) => [it.id, it] as const)),
  );
  const content = [...byId.values()].sort((a, b) => b.failure - a.failure);
  const ofKind = (kind: keyof EndpointTroubles['count']) =>
    content.filter((it) => it.kind === kind).slice(0, ENDPOINTS_LISTED);
  const countOf = (kind: keyof EndpointTroubles['count']) =>
    Math.max(ofKind(kind).length, ...parts.map(({ count }) => count[kind]));
  return {
    content: [...ofKind('open'), ...ofKind('failing'), ...ofKind('partly')],
    count: { open: countOf('open'), failing: countOf('failing'), partly: countOf('partly') },
  };
}

/** Joins rows with the same key. `join` receives the rows of the newer shard first. */
function joined<Row>(
  parts: readonly (readonly Row[])[],
  keyOf: (row: Row) => string | number,
  join: (newer: Row, older: Row) => Row,
): Row[] {
  const [first, ...others] = parts;
  if (others.length === 0) return [...first!];
  const rows = new Map<string | number, Row>();
  for (const row of parts.flat()) {
    const key = keyOf(row);
    const known = rows.get(key);
    rows.set(key, known === undefined ? row : join(known, row));
  }
  return [...rows.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

const step = ({ at }: { readonly at: Date }) => at.getTime();

/** Adds the numbers of two records with the same names. */
function added<Counts extends Readonly<Record<string, number>>>(
  one: Counts,
  other: Counts,
): Counts {
  return Object.fromEntries(
    Object.entries(one).map(([name, n]) => [name, n + other[name]!]),
  ) as Counts;
}

/** Adds up the activity in each step. */
export function mergeActivity(parts: readonly (readonly Activity[])[]): Activity[] {
  return joined(parts, step, (one, other) => ({
    at: one.at,
    events: added(one.events, other.events),
    deliveries: added(one.deliveries, other.deliveries),
    attempts: added(one.attempts, other.attempts),
  }));
}

/** Returns the latencies of each step. In the step of a move, they are those of the newer shard. */
export function mergeLatencies(parts: readonly (readonly Latencies[])[]): Latencies[] {
  return joined(parts, step, (newer) => newer);
}

/** Adds up what waited at most in each step. */
export function mergeBacklog(parts: readonly (readonly BacklogStep[])[]): BacklogStep[] {
  return joined(parts, step, (one, other) => ({
    at: one.at,
    pending_events: one.pending_events + other.pending_events,
    waiting_deliveries: one.waiting_deliveries + other.waiting_deliveries,
  }));
}

/** Adds up the attempts of each endpoint. */
export function mergeEndpointActivity(
  parts: readonly (readonly EndpointActivity[])[],
): EndpointActivity[] {
  return joined(
    parts,
    ({ endpoint_id }) => endpoint_id,
    (one, other) => ({
      endpoint_id: one.endpoint_id,
      success: one.success + other.success,
      failure: one.failure + other.failure,
      last_at: latest([one.last_at, other.last_at])!,
    }),
  );
}
