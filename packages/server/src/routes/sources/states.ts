import { withTimeout } from '@gateway/core/process';
import type { SourceRow } from '@gateway/store/config';
import { findReaders } from '@gateway/store/deliveries';
import { LAG_TTL_MS, PARTITIONS_MAX, readSourceLag } from '@gateway/store/kv';
import {
  Id,
  int,
  namedObject,
  nullable,
  object,
  oneOf,
  projectItem,
  projectRoute,
  string,
  Timestamp,
  Type,
  type Route,
} from '../../api/vocabulary.js';
import { readConditions, SOURCES_MAX } from '../../explain/source-conditions.js';
import { requireSource } from './source-view.js';

const READ_MS = 1_000;

const Waiting = nullable(int(), 'Unacknowledged messages at the broker; null if unknown.');
const State = namedObject('SourceState', {
  uid: Id,
  name: string(),
  state: oneOf(
    ['active', 'connecting', 'failing', 'paused', 'disabled', 'unknown'],
    '`active`: an agent reads the source, or it accepts requests. `unknown`: no agent reported within the last 30 seconds.',
  ),
  reason: nullable(string(), 'Why the source is not active.'),
  since: nullable(Timestamp, 'When the state began; null if unknown.'),
  messages: Waiting,
  reported_at: nullable(Timestamp),
});

export const stateRoutes: readonly Route[] = [
  projectRoute(
    'GET /sources/states',
    `Shows which sources are read, their lag behind the broker, and why others are not read. Covers the newest ${SOURCES_MAX} sources.`,
    { data: object({ content: Type.Array(State) }), name: 'listStates' },
    async (call) => {
      const { conditions } = await readConditions(call);
      const content = conditions.map(({ id, name, reported, ...condition }) => ({
        uid: id,
        name,
        ...condition,
        messages: reported?.messages ?? null,
        reported_at: reported ? new Date(reported.reportedAtMs) : null,
      }));
      return { message: 'source states', data: { content } };
    },
  ),
];

const Lag = namedObject('SourceLag', {
  uid: Id,
  messages: Waiting,
  partition_count: int(),
  partitions: Type.Array(
    object({
      partition: string('Partition of the topic; empty for a queue.'),
      messages: int(),
      position: nullable(
        string(
          'Position of the next message to read, such as an offset in Kafka; null for a queue.',
        ),
      ),
      end: nullable(string('Position of the next message to be produced; null for a queue.')),
    }),
    {
      maxItems: PARTITIONS_MAX,
      description: `Up to ${PARTITIONS_MAX} partitions, largest lag first.`,
    },
  ),
  reported_at: nullable(Timestamp),
  reason: nullable(string(), 'Why the lag is unknown.'),
});

export const lagRoutes: readonly Route[] = [
  projectItem(
    'GET /sources/:id/lag',
    'Shows the lag of a source behind its broker by partition, as agents reported within the last 30 seconds.',
    { thing: 'source lag', data: Lag },
    async (call) => {
      const source = await requireSource(call);
      const { ids: agents } = await findReaders(call.planes.data);
      let isKvAway = false;
      const lag = await withTimeout(readSourceLag(call.kv, source.id, agents), READ_MS).catch(
        () => void (isKvAway = true),
      );
      return { source, lag, isKvAway, hasAgents: agents.length > 0 };
    },
    ({ source, lag, ...state }) => ({
      uid: source.id,
      messages: lag?.messages ?? null,
      partition_count: lag?.partitionCount ?? 0,
      partitions: lag?.partitions ?? [],
      reported_at: lag ? new Date(lag.reportedAtMs) : null,
      reason: lag ? null : whyUnknown(source, state),
    }),
  ),
];

function whyUnknown(
  source: SourceRow,
  { isKvAway, hasAgents }: { isKvAway: boolean; hasAgents: boolean },
): string {
  if (source.http) return 'An HTTP source has no broker and therefore no lag.';
  if (source.is_disabled) return 'The source is disabled, so agents do not query its broker.';
  if (!hasAgents) return 'No agent that reads sources is running.';
  if (isKvAway) return 'KV, where agents report the lag, is unavailable.';
  const seconds = LAG_TTL_MS / 1000;
  return `No agent has reported a lag within ${seconds} seconds. The source may be new, its broker may not answer (see /healthz of the agents), or its plugin may not tell the lag${source.paused_at ? ' of a paused source' : ''}.`;
}
