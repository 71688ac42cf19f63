import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import {
  Flags,
  GatewayCommand,
  idOf,
  integerOf,
  jsonFlag,
  oneOf,
  timeOf,
  valueFlag,
  withShards,
  wrongUse,
} from '../../app/gateway-command.js';
import { noteInterruption } from '../../app/signals.js';
import { openSignals, withArchive } from '../../app/stores.js';
import { counted } from '../../output/table.js';

const OUTCOMES = ['failure', 'success', 'discarded'] as const;
const ALL = Number.MAX_SAFE_INTEGER;

export default class ArchiveReplay extends GatewayCommand {
  static override description =
    'Makes new events of archived ones: of the current time, with the data, headers and source that they had. Agents route them by the current subscriptions. ' +
    'With --endpoint-id or --outcome, which select deliveries, each is sent again to its endpoint alone, without filters and functions of subscriptions. ' +
    'The coordinates of a new event are archive/<id>, with the id that it had. ' +
    'The command can be interrupted and repeated: within 7 days, it sends no event twice.';
  static override examples = [
    'gateway archive replay --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --from 2026-01-30 --to 2026-01-31 --event-type order.* --dry-run',
    'gateway archive replay --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --from 2026-01-31T09:00:00Z --to 2026-01-31T10:30:00Z --outcome failure',
    'gateway archive replay --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --id 019ab3c4-5d6e-8f70-9123-456789abcdef',
  ];
  static override flags = {
    'project-id': valueFlag('<id>', 'Project of the events. Required.'),
    from: valueFlag('<time>', 'First UTC day, or time, of the messages, as in 2026-01-31.'),
    to: valueFlag('<time>', 'Last UTC day, or time, of the messages.'),
    id: valueFlag('<id>', 'Only this event, instead of --from and --to.'),
    'event-type': valueFlag('<pattern>', 'Only events of this type, as in order.*.'),
    'source-id': valueFlag('<id>', 'Only events of this source.'),
    'endpoint-id': valueFlag('<id>', 'Only deliveries to this endpoint.'),
    outcome: valueFlag('<status>', `Only deliveries with this status: ${OUTCOMES.join(', ')}.`),
    limit: valueFlag('<integer>', 'Maximum number of new events. [default: no limit]'),
    'dry-run': Flags.boolean({ summary: 'Count what would be sent, without sending it.' }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(ArchiveReplay);
    const { json, 'dry-run': dryRun = false } = flags;
    const projectId = idOf('--project-id', flags['project-id']);
    if (projectId === undefined)
      throw wrongUse('gateway archive replay needs --project-id', 'name the project');
    const limit = integerOf('--limit', flags.limit, { max: ALL, otherwise: ALL });
    const range = rangeOf(flags);
    const selection = {
      projectId,
      eventType: flags['event-type'],
      sourceId: idOf('--source-id', flags['source-id']),
      endpointId: idOf('--endpoint-id', flags['endpoint-id']),
      outcome: oneOf('--outcome', flags.outcome, OUTCOMES),
    };
    const { config } = this.resolve(flags);
    const [{ idBound }, { readProjectShard }] = await Promise.all([
      import('@gateway/store/pagination'),
      import('@gateway/store/shards'),
    ]);
    const [firstId, lastId] =
      'id' in range
        ? [range.id, range.id]
        : [idBound(range.firstMs, '0'), idBound(range.lastMs, 'f')];
    const sums = { selected: 0, created: 0 };
    const interruption = noteInterruption();
    const replay = () =>
      withArchive(config, (archive) =>
        withShards(config, async (shards) => {
          const shard = await readProjectShard(shards.control.pool, projectId);
          if (shard === undefined)
            throw new GatewayError('not_found', { thing: 'project', id: projectId });
          // The current shard of the project takes new events.
          const { name, planes } = shards.of(shard);
          const onKvAway = () =>
            this.logToStderr(
              'warning: KV is unavailable; agents find the events a few seconds later.',
            );
          const signals = dryRun ? undefined : await openSignals(config, onKvAway);
          const options = { pool: planes.data, dryRun, limit, perSecond: paceOf(config) };
          const chosen = { ...selection, firstId, lastId };
          try {
            for await (const { selected, created } of archive.replay(chosen, options)) {
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
          this.logToStderr(
            `sent ${eventsText(sums.created)} before the failure; run the command again to continue with the rest`,
          );
        throw error;
      });
    const duplicates = dryRun ? 0 : sums.selected - sums.created;
    const stopped = interruption.status !== 0;
    if (json)
      this.log(
        JSON.stringify(
          { project_id: projectId, dry_run: dryRun, stopped, ...sums, duplicates },
          null,
          2,
        ),
      );
    else if (sums.selected === 0) this.log('nothing to send: no archived event matches');
    else if (dryRun) this.log(`${eventsText(sums.selected)} would be sent`);
    else this.log(`sent ${eventsText(sums.created)}`);
    if (duplicates > 0)
      this.logToStderr(`${eventsText(duplicates)} had been sent in the last 7 days`);
    if (!stopped) return;
    this.logToStderr('stopped before the end; run the command again to continue with the rest');
    this.exit(interruption.status);
  }
}

/** Returns the events per second that no limit of the project or the instance forbids. */
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
  if (id !== undefined && from === undefined && to === undefined) return { id: idOf('--id', id) };
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
  return counted(count, 'event', 'events');
}
