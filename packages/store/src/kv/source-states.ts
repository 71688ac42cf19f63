import type { Kv } from './kv.js';
import { LAG_TTL_MS } from './source-lags.js';
import { decodeValue, encodeValue } from './versions.js';

export interface SourceState {
  /** `connecting` until the source has been read or refused. */
  readonly state: 'connecting' | 'reading' | 'failing';
  /** For the tenant. */
  readonly reason: string | null;
  readonly sinceMs: number;
  /** Unacknowledged at the broker. Null if unknown. */
  readonly messages: number | null;
}

export interface ReportedState extends SourceState {
  readonly reportedAtMs: number;
}

interface OfProject {
  readonly projectId: string;
}

/**
 * The braces, a Redis hash tag, put the states of a project on one Cluster node, to be read
 * together.
 */
const nameOf = (projectId: string, sourceId: string, agentId: number) =>
  `source-state:{${projectId}}:${sourceId}:${agentId}`;

/** The servers and agents that take the requests of an HTTP source. */
export const TAKERS = 0;

/** As seen by an agent, for half a minute by default. Rejects if KV is down. */
export async function writeSourceState(
  kv: Kv,
  {
    projectId,
    sourceId,
    agentId,
  }: OfProject & { readonly sourceId: string; readonly agentId: number },
  state: SourceState,
  ttlMs = LAG_TTL_MS,
): Promise<void> {
  await kv.set(
    nameOf(projectId, sourceId, agentId),
    encodeValue('source-state', { ...state, reportedAtMs: Date.now() }),
    { ttlMs },
  );
}

/**
 * Merges the reports of these agents; `failing` takes precedence. One command per thousand pairs of
 * source and agent. Rejects if KV is down.
 */
export async function readSourceStates(
  kv: Kv,
  {
    projectId,
    sourceIds,
    agentIds,
  }: OfProject & { readonly sourceIds: readonly string[]; readonly agentIds: readonly number[] },
): Promise<ReadonlyMap<string, ReportedState>> {
  const texts = await kv.getAll(
    sourceIds.flatMap((id) => agentIds.map((agentId) => nameOf(projectId, id, agentId))),
  );
  const found = new Map<string, ReportedState>();
  for (const [k, id] of sourceIds.entries()) {
    const ofSource = texts.slice(k * agentIds.length, (k + 1) * agentIds.length);
    const state = together(
      ofSource.flatMap((text) => decodeValue<ReportedState>('source-state', text) ?? []),
    );
    if (state) found.set(id, state);
  }
  return found;
}

const WORST = ['failing', 'reading', 'connecting'] as const;

function together(reports: readonly ReportedState[]): ReportedState | undefined {
  const worst = WORST.map((state) => reports.find((it) => it.state === state)).find(
    (it) => it !== undefined,
  );
  const known = reports.flatMap(({ messages }) => (messages === null ? [] : [messages]));
  return worst && { ...worst, messages: known.length === 0 ? null : Math.max(...known) };
}

interface SourceSettings {
  /** Not null if the source takes requests to a URL, and so needs no agent that reads it. */
  readonly mask_id: string | null;
  readonly is_disabled: boolean;
  readonly paused_at: Date | null;
  readonly pause_reason: string | null;
}

export interface SourceCondition {
  readonly state: 'active' | 'connecting' | 'failing' | 'paused' | 'disabled' | 'unknown';
  readonly reason: string | null;
  /** Null if it is not known. */
  readonly since: Date | null;
}

/** Why no state is known of any source, and since when. */
type Absence = Pick<SourceCondition, 'reason' | 'since'>;

/** `lostAt` is the end of the last reader. */
export function whyUnreported(
  { ids, lostAt }: { readonly ids: readonly number[]; readonly lostAt: Date | null },
  isKvAway: boolean,
): Absence {
  if (ids.length === 0) return { reason: 'No agent that reads sources is running.', since: lostAt };
  const reason = isKvAway
    ? 'KV, where agents report states, is unavailable.'
    : 'No agent has reported the source for 30 seconds. It may be new.';
  return { reason, since: null };
}

/** From its settings and the reports of agents. */
export function sourceCondition(
  { mask_id: maskId, is_disabled, paused_at: since, pause_reason: reason }: SourceSettings,
  reported: ReportedState | undefined,
  absence: Absence,
): SourceCondition {
  if (is_disabled) return { state: 'disabled', reason: 'The source is disabled.', since: null };
  if (since) return { state: 'paused', reason, since };
  if (maskId !== null && !reported) return { state: 'active', reason: null, since: null };
  if (!reported) return { state: 'unknown', ...absence };
  return {
    state: reported.state === 'reading' ? 'active' : reported.state,
    reason: reported.reason,
    since: new Date(reported.sinceMs),
  };
}
