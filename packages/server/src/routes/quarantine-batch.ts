import { GatewayError } from '@gateway/core/errors';
import type { DryRun, Replayed } from '@gateway/ingest/requests/replay';
import {
  discardQuarantinedMessages,
  readReplayable,
  selectQuarantined,
  type QuarantineStep,
} from '@gateway/store/quarantine';
import { progressAt } from '@gateway/store/pagination';
import {
  batchQuery,
  boolean,
  Id,
  int,
  namedObject,
  Next,
  nullable,
  object,
  oneOf,
  optional,
  projectRoute,
  string,
  timeRange,
  Type,
  Word,
  WORK_MS,
  type ProjectCall,
  type Route,
  type Static,
} from '../api/vocabulary.js';
import { requireQuarantined } from './quarantine.js';

/** Each replay uses its own connection. */
const AT_ONCE = 2;

const ReplayQuery = object({ dry_run: batchQuery.dry_run });
const Replay = namedObject('ReplayedMessage', {
  uid: Id,
  outcome: oneOf(
    ['accepted', 'replayed', 'duplicate', 'dropped', 'refused'],
    '`accepted`: events are created. `duplicate`: its events already exist. `dropped`: the function dropped the message. `refused`: the message stays in quarantine.',
  ),
  event_ids: Type.Array(Id),
  code: nullable(string(), 'Why the message is still refused.'),
  reason: nullable(string()),
});

const BatchQuery = object({
  ...batchQuery,
  ...optional({ sourceId: Id, code: Word }),
});
const progress = {
  progress: Type.Number({ description: 'Share of the time range that is done, from 0 to 1.' }),
  dry_run: boolean(),
  next: Next,
};
const BatchReplay = namedObject('ReplayedMessages', {
  replayed: int('Replayed messages; in a dry run, messages that would create events.'),
  duplicates: int('Messages whose events already exist.'),
  dropped: int('Messages dropped by the function of their source.'),
  refused: int('Messages that stay in quarantine.'),
  changed: int('Messages that someone else replayed, discarded or edited meanwhile.'),
  ...progress,
});
const BatchDiscard = namedObject('DiscardedMessages', { count: int(), ...progress });

export const quarantineBatchRoutes: readonly Route[] = [
  projectRoute(
    'PUT /quarantine/:id/replay',
    'Replays a quarantined message with the current function of its source. Creates its events, or keeps the message in quarantine with the new reason.',
    { query: ReplayQuery, data: Replay },
    async (call) => {
      const { id, query } = call;
      const { status } = await requireQuarantined(call, id);
      if (status !== 'quarantined')
        throw new GatewayError('conflict', { sentence: `the message is already ${status}` });
      const { results, failure } = await replay(call, [id], query.dry_run === true);
      const [result] = results;
      if (!result)
        throw (
          failure ??
          new GatewayError('conflict', { sentence: 'the message was changed concurrently' })
        );
      if (result.kind === 'changed')
        throw new GatewayError('conflict', { sentence: 'the message was changed concurrently' });
      const { code = null, reason = null } = 'refusal' in result ? result.refusal : {};
      const data = {
        uid: id,
        outcome: result.kind,
        event_ids:
          'ids' in result
            ? result.ids
            : result.kind === 'accepted'
              ? result.events.map((it) => it.id)
              : [],
        code,
        reason,
      };
      return {
        message: `quarantined message ${query.dry_run ? 'would be ' : ''}${result.kind}`,
        data,
      };
    },
  ),
  projectRoute(
    'POST /quarantine/batchreplay',
    'Replays the selected quarantined messages, oldest first. Runs for up to 10 s; if `next` is not null, continue with it as `after`.',
    { query: BatchQuery, data: BatchReplay, name: 'batchReplay', isLong: true },
    async (call) => {
      const dryRun = call.query.dry_run === true;
      const data = {
        replayed: 0,
        duplicates: 0,
        dropped: 0,
        refused: 0,
        changed: 0,
        progress: 0,
        dry_run: dryRun,
        next: null as string | null,
      };
      const until = performance.now() + WORK_MS;
      const isOver = () => performance.now() > until;
      for await (const step of selected(call)) {
        let done = 0;
        for (; done < step.ids.length && !(done > 0 && isOver()); done += AT_ONCE) {
          const { results, failure } = await replay(
            call,
            step.ids.slice(done, done + AT_ONCE),
            dryRun,
          );
          for (const { kind } of results) data[COUNTED[kind]]++;
          // Completed replays are not undone, and the next request does not select their messages
          // again.
          if (failure) throw failure;
        }
        const isWhole = done >= step.ids.length;
        data.next = isWhole ? step.next : step.ids[done - 1]!;
        data.progress = isWhole ? step.progress : progressOf(call.query, data.next!);
        if (data.next !== null && isOver()) break;
      }
      return {
        message: `${data.replayed} quarantined messages ${dryRun ? 'would be' : 'are'} replayed`,
        data,
      };
    },
  ),
  projectRoute(
    'POST /quarantine/batchdiscard',
    'Discards the selected quarantined messages, oldest first. Runs for up to 10 s; if `next` is not null, continue with it as `after`.',
    { query: BatchQuery, data: BatchDiscard, name: 'batchDiscard', isLong: true },
    async (call) => {
      const { planes, project, query } = call;
      const dryRun = query.dry_run === true;
      const data = { count: 0, progress: 0, dry_run: dryRun, next: null as string | null };
      const until = performance.now() + WORK_MS;
      for await (const { ids, next, progress } of selected(call)) {
        const refs = ids.map((id) => ({ projectId: project.id, id }));
        data.count +=
          dryRun || ids.length === 0
            ? ids.length
            : (await discardQuarantinedMessages(planes.data, refs)).length;
        Object.assign(data, { next, progress });
        if (next !== null && performance.now() > until) break;
      }
      return {
        message: `${data.count} quarantined messages ${dryRun ? 'would be' : 'are'} discarded`,
        data,
      };
    },
  ),
];

type BatchCall = ProjectCall<undefined, Static<typeof BatchQuery>>;

const COUNTED = {
  accepted: 'replayed',
  replayed: 'replayed',
  duplicate: 'duplicates',
  dropped: 'dropped',
  refused: 'refused',
  changed: 'changed',
} as const satisfies Record<(DryRun | Replayed)['kind'], string>;

function selected({ planes, project, query }: BatchCall): AsyncIterable<QuarantineStep> {
  const { sourceId, code, after } = query;
  const { from = new Date(0), to } = timeRange(query);
  return selectQuarantined(planes.data, project.id, { from, to, after, sourceId, code });
}

function progressOf(query: Static<typeof BatchQuery>, id: string): number {
  const { from = new Date(0), to = new Date() } = timeRange(query);
  return progressAt(id, from.getTime(), to.getTime());
}

/** After a failure, the others are still replayed, and `failure` is the error. */
async function replay(
  { planes, project, functions, signalPending }: ProjectCall,
  ids: readonly string[],
  dryRun: boolean,
): Promise<{ results: readonly (DryRun | Replayed)[]; failure: Error | undefined }> {
  const refs = ids.map((id) => ({ projectId: project.id, id }));
  const messages = await readReplayable(planes, refs);
  const settled = await functions.replay(messages, { planes, dryRun });
  const results = settled.flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
  const created = results.flatMap((it) => (it.kind === 'replayed' ? it.ids : []));
  signalPending(
    created.map((id) => ({ projectId: project.id, id })),
    planes.shard,
  );
  const failed = settled.find((it) => it.status === 'rejected');
  return { results, failure: failed?.reason as Error | undefined };
}
