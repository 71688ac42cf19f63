import { Type } from '@sinclair/typebox';
import { withTimeout } from '@gateway/core/process';
import { listSources, type SourceRow } from '@gateway/store/config';
import { listReaders } from '@gateway/store/deliveries';
import { readSourceStates, type ReportedState } from '@gateway/store/kv';
import { projectRoute, type Route } from '../../api/route.js';
import { Id, named, nullable, object, oneOf, Timestamp } from '../../http/schema.js';

const READ_MS = 1_000;
const SOURCES_MAX = 1_000;

const State = named(
  'SourceState',
  object({
    uid: Id,
    name: Type.String(),
    state: oneOf(['active', 'connecting', 'failing', 'paused', 'disabled', 'unknown'], {
      description:
        '`active`: an agent reads it, or it takes requests. `unknown`: no agent has told within half a minute.',
    }),
    reason: nullable(Type.String(), 'Why it is not active, in sentences.'),
    messages: nullable(
      Type.Integer(),
      'Messages at the broker that are not acknowledged yet; null when it is not known.',
    ),
    reported_at: nullable(Timestamp),
  }),
);

export const stateRoutes: readonly Route[] = [
  projectRoute(
    'GET /sources/states',
    `Shows which sources are read, how far behind their brokers they are, and why others are not read. The newest ${SOURCES_MAX}.`,
    { data: object({ content: Type.Array(State) }), name: 'listStates' },
    async ({ database, kv, project }) => {
      const page = { perPage: SOURCES_MAX, sort: 'DESC', direction: 'next' } as const;
      const [{ content: rows }, agentIds] = await Promise.all([
        listSources(database.knex, project.id, {}, page),
        listReaders(database.pool),
      ]);
      const sourceIds = rows.filter(({ type }) => type !== 'http').map(({ id }) => id);
      const known = await withTimeout(
        readSourceStates(kv, { projectId: project.id, sourceIds, agentIds }),
        READ_MS,
      ).catch(() => undefined);
      const absence = !known
        ? 'KV does not answer; agents report there.'
        : agentIds.length === 0
          ? 'No agent that reads sources is running.'
          : 'No agent has reported the source within half a minute. It may be new.';
      return {
        message: 'source states',
        data: { content: rows.map((row) => stateOf(row, known?.get(row.id), absence)) },
      };
    },
  ),
];

function stateOf(
  { id, name, type, is_disabled, paused_at, pause_reason }: SourceRow,
  known: ReportedState | undefined,
  absence: string,
): unknown {
  const reported = {
    messages: known?.messages ?? null,
    reported_at: known ? new Date(known.reportedAtMs) : null,
  };
  const of = (state: string, reason: string | null = null) => ({
    uid: id,
    name,
    state,
    reason,
    ...reported,
  });
  if (is_disabled) return of('disabled', 'The source is disabled.');
  if (paused_at) return of('paused', pause_reason);
  if (type === 'http') return of('active');
  if (!known) return of('unknown', absence);
  return known.state === 'reading' ? of('active') : of(known.state, known.reason);
}
