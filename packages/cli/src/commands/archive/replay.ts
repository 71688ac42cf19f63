import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import {
  command,
  idFlag,
  integerOf,
  jsonFlag,
  readFlag,
  switchFlag,
  timeOf,
  valueFlag,
  withShards,
  wordFlag,
  wrongUse,
} from '../../app/gateway-command.js';
import { noteInterruption } from '../../app/signals.js';
import { openSignals, withArchive } from '../../app/stores.js';
import { counted } from '../../output/table.js';

const OUTCOMES = ['failure', 'success', 'discarded'] as const;
const ALL = Number.MAX_SAFE_INTEGER;

export default command({
  description:
    'Makes new events of archived ones: of the current time, with the data, headers and source that they had. Agents route them by the current subscriptions. ' +
    'With --endpoint-id or --outcome, which select deliveries, each is sent again to its endpoint alone, without filters and functions of subscriptions. ' +
    'The coordinates of a new event are archive/<id>, with the id that it had. ' +
    'The command can be interrupted and repeated: within 7 days, it sends no event twice.',
  examples: [
    'gateway archive replay --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --from 2026-01-30 --to 2026-01-31 --event-type order.* --dry-run',
    'gateway archive replay --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --from 2026-01-31T09:00:00Z --to 2026-01-31T10:30:00Z --outcome failure',
    'gateway archive replay --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --id 019ab3c4-5d6e-8f70-9123-456789abcdef',
  ],
  flags: {
    'project-id': idFlag('Project of the events. Required.'),
    from: valueFlag('<time>', 'First UTC day, or time, of the messages, as in 2026-01-31.'),
    to: valueFlag('<time>', 'Last UTC day, or time, of the messages.'),
    id: idFlag('Only this event, instead of --from and --to.'),
    'event-type': valueFlag('<pattern>', 'Only events of this type, as in order.*.'),
    'source-id': idFlag('Only events of this source.'),
    'endpoint-id': idFlag('Only deliveries to this endpoint.'),
    outcome: wordFlag(
      '<status>',
      `Only deliveries with this status: ${OUTCOMES.join(', ')}.`,
      OUTCOMES,
    ),
    limit: readFlag('<integer>', 'Maximum number of new events. [default: no limit]', (name, it) =>
      integerOf(name, it, { max: ALL, otherwise: ALL }),
    ),
    'dry-run': switchFlag('Count what would be sent, without sending it.'),
    ...jsonFlag,
  },
  async run({ flags, config, exit, note, show }) {
    const { 'dry-run': dryRun = false, 'project-id': projectId, limit } = flags;
    if (projectId === undefined)
      throw wrongUse('gateway archive replay needs --project-id', 'name the project');
    const range = rangeOf(flags);
    const settings = config();
    const [{ idBound }, { readProjectShard }] = await Promise.all([
      import('@gateway/store/pagination'),
      import('@gateway/store/shards'),
    ]);
    const [firstId, lastId] =
      'id' in range
        ? [range.id, range.id]
        : [idBound(range.firstMs, '0'), idBound(range.lastMs, 'f')];
    const selection = {
      projectId,
      firstId,
      lastId,
      eventType: flags['event-type'],
      sourceId: flags['source-id'],
      endpointId: flags['endpoint-id'],
      outcome: flags.outcome,
    };
    const sums = { selected: 0, created: 0 };
    const interruption = noteInterruption();
    const replay = () =>
      withArchive(settings, (archive) =>
        withShards(settings, async (shards) => {
          const shard = await readProjectShard(shards.control.pool, projectId);
          if (shard === undefined)
            throw new GatewayError('not_found', { thing: 'project', id: projectId });
          // The current shard of the project takes new events.
          const { name, planes } = shards.of(shard);
          const onKvAway = () =>
            note('warning: KV is unavailable; agents find the events a few seconds later.');
          const signals = dryRun ? undefined : await openSignals(settings, onKvAway);
          const options = { pool: planes.data, dryRun, limit, perSecond: paceOf(settings) };
          try {
            for await (const { selected, created } of archive.replay(selection, options)) {
              sums.selected += selected;
              sums.created += created.length;
              await signals?.push(created, name);
              if (interruption.status !== 0) break;
            }
          } finally {
            await signals?.close();
          }
        }),
      );
    await replay()
      .finally(() => interruption.done())
      .catch((error: unknown) => {
        if (sums.created > 0)
          note(
            `sent ${eventsText(sums.created)} before the failure; run the command again to continue with the rest`,
          );
        throw error;
      });
    const { selected, created } = sums;
    const duplicates = dryRun ? 0 : selected - created;
    const stopped = interruption.status !== 0;
    show({ project_id: projectId, dry_run: dryRun, stopped, ...sums, duplicates }, () => {
      if (selected === 0) return 'nothing to send: no archived event matches';
      return dryRun ? `${eventsText(selected)} would be sent` : `sent ${eventsText(created)}`;
    });
    if (duplicates > 0) note(`${eventsText(duplicates)} had been sent in the last 7 days`);
    if (!stopped) return;
    note('stopped before the end; run the command again to continue with the rest');
    exit(interruption.status);
  },
});

/** Events per second that no limit of the project or the instance forbids. */
function paceOf({ instance_ingest_rate: ofInstance, limits }: Config): number {
  const rates = [ofInstance, limits.events_per_second].filter((rate) => rate > 0);
  return rates.length > 0 ? Math.min(...rates) : 0;
}

function rangeOf({
  id,
  from,
  to,
}: Readonly<Record<'id' | 'from' | 'to', string | undefined>>):
  { readonly id: string } | { readonly firstMs: number; readonly lastMs: number } {
  if (id !== undefined && from === undefined && to === undefined) return { id };
  if (id !== undefined || from === undefined || to === undefined)
    throw wrongUse(
      'gateway archive replay needs --from and --to, or --id',
      'set both, as in `--from 2026-01-30 --to 2026-01-31`, or name one event',
    );
  const { firstMs } = timeOf('--from', from);
  const { lastMs } = timeOf('--to', to);
  if (lastMs < firstMs) throw wrongUse('--to is before --from', 'exchange them');
  return { firstMs, lastMs };
}

function eventsText(count: number): string {
  return counted(count, 'event');
}
