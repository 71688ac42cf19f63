import type { Kv } from './kv.js';
import { LAG_TTL_MS } from './source-lags.js';
import { decodeValue, encodeValue } from './versions.js';

export interface SourceState {
  /** `connecting`: neither read nor refused yet. */
  readonly state: 'connecting' | 'reading' | 'failing';
  /** Sentences for the tenant. */
  readonly reason: string | null;
  /** Unacknowledged messages at the broker; null: unknown. */
  readonly messages: number | null;
}

export interface ReportedState extends SourceState {
  readonly reportedAtMs: number;
}

interface OfProject {
  readonly projectId: string;
}

/** The braces keep a project's states on one node of a Cluster, to read them together. */
const nameOf = (projectId: string, sourceId: string, agentId: number) =>
  `source-state:{${projectId}}:${sourceId}:${agentId}`;

/** Stores an agent's state of a source for half a minute. Rejects when KV is down. */
export async function writeSourceState(
  kv: Kv,
  {
    projectId,
    sourceId,
    agentId,
  }: OfProject & { readonly sourceId: string; readonly agentId: number },
  state: SourceState,
): Promise<void> {
  await kv.set(
    nameOf(projectId, sourceId, agentId),
    encodeValue('source-state', { ...state, reportedAtMs: Date.now() }),
    {
      ttlMs: LAG_TTL_MS,
    },
  );
}

/**
 * Returns the recently reported states of sources, merged over these agents; a failing one wins.
 * Cost: one command per thousand pairs of source and agent. Rejects when KV is down.
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
