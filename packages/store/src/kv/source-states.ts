import type { Kv } from './kv.js';
import { LAG_TTL_MS } from './source-lags.js';

/** How a source is read. */
export interface SourceState {
  /** `connecting`: it was neither read nor refused yet. */
  readonly state: 'connecting' | 'reading' | 'failing';
  /** Why it fails, in sentences for its tenant. */
  readonly reason: string | null;
  /** Messages at the broker that are not acknowledged; null when that is not known. */
  readonly messages: number | null;
}

export interface ReportedState extends SourceState {
  readonly reportedAtMs: number;
}

const nameOf = (sourceId: string, agentId: number) => `source-state:${sourceId}:${agentId}`;

/** Keeps how an agent reads a source for half a minute. Rejects when KV is down. */
export async function writeSourceState(
  kv: Kv,
  { sourceId, agentId }: { readonly sourceId: string; readonly agentId: number },
  state: SourceState,
): Promise<void> {
  await kv.set(nameOf(sourceId, agentId), JSON.stringify({ ...state, reportedAtMs: Date.now() }), { ttlMs: LAG_TTL_MS });
}

/** Returns how these agents read sources; those that none has reported lately are left out. Of a source that one cannot read, that is told. Rejects when KV is down. */
export async function readSourceStates(
  kv: Kv,
  sourceIds: readonly string[],
  agentIds: readonly number[],
): Promise<ReadonlyMap<string, ReportedState>> {
  const found = await Promise.all(
    sourceIds.map(async (id) => {
      const texts = await Promise.all(agentIds.map((agentId) => kv.get(nameOf(id, agentId))));
      const reports = texts.flatMap((text) => (text === undefined ? [] : [JSON.parse(text) as ReportedState]));
      return [id, together(reports)] as const;
    }),
  );
  return new Map(found.flatMap(([id, state]) => (state ? [[id, state] as const] : [])));
}

const WORST = ['failing', 'reading', 'connecting'] as const;

function together(reports: readonly ReportedState[]): ReportedState | undefined {
  const worst = WORST.map((state) => reports.find((it) => it.state === state)).find((it) => it !== undefined);
  const known = reports.flatMap(({ messages }) => (messages === null ? [] : [messages]));
  return worst && { ...worst, messages: known.length === 0 ? null : Math.max(...known) };
}
