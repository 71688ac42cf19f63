import { Type } from '@sinclair/typebox';
import type { SourceRow } from '@gateway/store/config';
import { listReaders } from '@gateway/store/deliveries';
import { LAG_TTL_MS, PARTITIONS_MAX, readSourceLag } from '@gateway/store/kv';
import { withTimeout } from '@gateway/core/process';
import { projectRoute, type Route } from '../../api/route.js';
import { Id, named, nullable, object, Timestamp } from '../../http/schema.js';
import { requireSource } from './source-view.js';

const READ_MS = 1_000;

const Lag = named(
  'SourceLag',
  object({
    uid: Id,
    messages: nullable(
      Type.Integer(),
      'Messages at the broker that are not acknowledged yet; null when it is not known.',
    ),
    partition_count: Type.Integer(),
    partitions: Type.Array(
      object({
        partition: Type.String({ description: 'Empty for a queue.' }),
        messages: Type.Integer(),
        position: nullable(
          Type.String({
            description: 'Place of the next message; of Kafka an offset. Null for a queue.',
          }),
        ),
        end: nullable(
          Type.String({
            description: 'Place of the next message that will be produced. Null for a queue.',
          }),
        ),
      }),
      {
        maxItems: PARTITIONS_MAX,
        description: `The ${PARTITIONS_MAX} with the largest lag, that one first.`,
      },
    ),
    reported_at: nullable(Timestamp),
    reason: nullable(Type.String(), 'Why the lag is not known, in a sentence.'),
  }),
);

export const lagRoutes: readonly Route[] = [
  projectRoute(
    'GET /sources/:id/lag',
    'Shows how far the agents are behind the broker of a source, by partition, as they have reported within half a minute.',
    { data: Lag },
    async (call) => {
      const source = await requireSource(call);
      const agents = await listReaders(call.database.pool);
      const away = Symbol();
      const lag = await withTimeout(readSourceLag(call.kv, source.id, agents), READ_MS).catch(
        () => away,
      );
      const found = typeof lag === 'symbol' ? undefined : lag;
      const data = {
        uid: source.id,
        messages: found?.messages ?? null,
        partition_count: found?.partitionCount ?? 0,
        partitions: found?.partitions ?? [],
        reported_at: found ? new Date(found.reportedAtMs) : null,
        reason: found
          ? null
          : whyUnknown(source, { isKvAway: lag === away, hasAgents: agents.length > 0 }),
      };
      return { message: 'source lag', data };
    },
  ),
];

function whyUnknown(
  source: SourceRow,
  { isKvAway, hasAgents }: { isKvAway: boolean; hasAgents: boolean },
): string {
  if (source.type === 'http') return 'An HTTP source has no broker: its messages wait nowhere.';
  if (source.is_disabled) return 'The source is disabled, so that agents do not ask its broker.';
  if (!hasAgents) return 'No agent that reads sources is running.';
  if (isKvAway) return 'KV does not answer; agents report the lag there.';
  const seconds = LAG_TTL_MS / 1000;
  return `No agent has reported a lag within ${seconds} seconds. The source may be new, its broker may not answer (see /healthz of the agents), or its plugin may not tell the lag${source.paused_at ? ' of a paused source' : ''}.`;
}
