import { isGatewayError } from '@gateway/core/errors';
import type { EventDeliveryStatus, RetryOutcome, RetryProject } from '@gateway/store/deliveries';
import type { Shards } from '@gateway/store/shards';
import { breakerLines, findBehindBreakers, probeBreaker } from '../app/breakers.js';
import {
  Flags,
  GatewayCommand,
  idOf,
  jsonFlag,
  onEachShard,
  oneOf,
  parseDuration,
  valueFlag,
  withShards,
  wrongUse,
} from '../app/gateway-command.js';
import { noteInterruption } from '../app/signals.js';
import { searchShards, shardsOf } from '../app/stores.js';
import { escapeLine } from '../output/escape-terminal.js';
import { counted } from '../output/table.js';

const STATUSES: readonly EventDeliveryStatus[] = [
  'failure',
  'discarded',
  'retry',
  'scheduled',
  'processing',
  'success',
];

const OUTCOMES: Readonly<Record<RetryOutcome, string>> = {
  due: 're-queued',
  held: 'held until the endpoint is no longer paused',
  inactive: 'skipped: the endpoint is inactive; activate it first',
  deleted: 'skipped: the endpoint was deleted',
  sending: 'skipped: in progress in a running agent',
  waiting: 'skipped: already due, or held for the paused endpoint',
};

const TABLE_ROWS = 20;
const NAME_CHARS = 40;

interface EndpointResult {
  readonly project_id: string;
  readonly project_name: string | null;
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly outcome: RetryOutcome;
  readonly deliveries: number;
}

export default class Retry extends GatewayCommand {
  static override description =
    'Recovers deliveries after an outage; it does not replace the retry policy of an endpoint. --time refers to the time of the messages, ' +
    'so choose a longer range if messages waited in a topic or queue. Each delivery gets one attempt at once; if its retries are ' +
    'used up and the attempt fails, the delivery fails again. Deliveries to paused endpoints wait until the endpoint is active; ' +
    'those to inactive and deleted endpoints, and those that an agent is sending, are left alone. With --endpoint-id, one delivery tries an endpoint whose circuit breaker is open; the others wait until it closes. The command can be interrupted and repeated at any time.';
  static override examples = [
    '<%= config.bin %> retry --status failure --time 2h --dry-run',
    '<%= config.bin %> retry --status failure --time 1h30m --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    '<%= config.bin %> retry --status success --time 10m --event-id 019ab3c4-5d6e-8f70-9123-456789abcdef --force',
  ];
  static override flags = {
    status: valueFlag(
      '<status>',
      `Status of the event deliveries to re-queue: ${STATUSES.join(', ')}.`,
    ),
    time: valueFlag(
      '<duration>',
      'How far back to look: integers with the units d, h, m, s and ms, as in 1h30m.',
    ),
    'project-id': valueFlag(
      '<id>',
      'Only event deliveries of this project. [default: all projects]',
    ),
    'event-id': valueFlag('<id>', 'Only event deliveries of this event.'),
    'endpoint-id': valueFlag('<id>', 'Only event deliveries to this endpoint.'),
    force: Flags.boolean({ summary: 'Required with --status success: deliver again.' }),
    'dry-run': Flags.boolean({
      summary: 'Count by project and endpoint, without changing anything.',
    }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Retry);
    const { json, 'dry-run': dryRun } = flags;
    const request = requestOf(flags);
    const { config } = this.resolve(flags);
    const { retryDeliveries } = await import('@gateway/store/deliveries');
    const results = new Map<string, EndpointResult>();
    const count = (...outcomes: readonly RetryOutcome[]) =>
      [...results.values()].reduce(
        (sum, it) => sum + (outcomes.includes(it.outcome) ? it.deliveries : 0),
        0,
      );
    const requeued = () => deliveriesText(count('due', 'held'));
    const showProgress = (text: string) => {
      if (process.stderr.isTTY && !json) process.stderr.write(`\r\x1b[2K${text}`);
    };
    const interruption = noteInterruption();
    const failure = await withShards(config, async (shards) => {
      const projects = await findProjects(shards, request);
      const { endpointId } = request;
      const dueInMs =
        dryRun || endpointId === undefined ? 0 : await probeBreaker(config, endpointId);
      const names = new Map(projects.map(({ id, name }) => [id, name]));
      const on = (name: string) =>
        projects.filter((it) => [it.shard, ...it.former_shards].includes(name));
      const needed = shards.all.filter(({ name }) => on(name).length > 0);
      await onEachShard(needed, async ({ name, planes }) => {
        if (interruption.status !== 0) return;
        const k = needed.findIndex((it) => it.name === name);
        for await (const { tallies, done } of retryDeliveries(
          planes,
          { ...request, projects: on(name) },
          { dryRun, dueInMs },
        )) {
          for (const {
            projectId,
            endpointId,
            endpointName,
            outcome,
            count: deliveries,
          } of tallies) {
            const key = `${projectId} ${endpointId} ${outcome}`;
            results.set(key, {
              project_id: projectId,
              project_name: names.get(projectId) ?? null,
              endpoint_id: endpointId,
              endpoint_name: endpointName,
              outcome,
              deliveries: deliveries + (results.get(key)?.deliveries ?? 0),
            });
          }
          showProgress(`${Math.floor(((k + done) / needed.length) * 100)} %  ${requeued()}`);
          if (interruption.status !== 0) return;
        }
      });
    })
      .then(() => undefined)
      .finally(() => {
        interruption.done();
        showProgress('');
      })
      .catch((error: unknown) => {
        // Shows what was done on the other shards.
        if (isGatewayError(error, 'shards_failed') && results.size > 0) return error;
        if (!dryRun && count('due', 'held') > 0)
          this.logToStderr(
            `re-queued ${requeued()} before the failure; run the command again to continue with the rest`,
          );
        throw error;
      });
    const stopped = interruption.status !== 0;
    const endpoints = [...results.values()].sort((a, b) => b.deliveries - a.deliveries);
    const behind = await findBehindBreakers(
      config,
      endpoints.filter(({ outcome }) => outcome === 'due'),
    );
    if (json) {
      const { status, from } = request;
      const skipped = Object.fromEntries(
        (['inactive', 'deleted', 'sending', 'waiting'] as const).map((it) => [it, count(it)]),
      );
      const sums = {
        requeued: count('due', 'held'),
        held: count('held'),
        skipped,
        behind_breakers: behind,
      };
      this.log(
        JSON.stringify({ status, from, dry_run: dryRun, stopped, ...sums, endpoints }, null, 2),
      );
    } else if (endpoints.length === 0) {
      this.log(
        `nothing to re-queue: no event delivery of the last ${flags.time} has status ${request.status}`,
      );
    } else {
      if (dryRun && endpoints.length > 1) this.logEndpoints(endpoints);
      this.log(dryRun ? `${requeued()} would be re-queued` : `re-queued ${requeued()}`);
    }
    if (!json) for (const line of breakerLines(behind)) this.logToStderr(line);
    for (const [outcome, remark] of Object.entries(OUTCOMES) as [RetryOutcome, string][])
      if (outcome !== 'due' && count(outcome) > 0)
        this.logToStderr(`${deliveriesText(count(outcome))} ${remark}`);
    if (failure) throw failure;
    if (!stopped) return;
    const kept = dryRun
      ? 'nothing was changed'
      : 're-queued deliveries stay re-queued; run the command again to continue with the rest';
    this.logToStderr(`stopped before the end; ${kept}`);
    this.exit(interruption.status);
  }

  private logEndpoints(endpoints: readonly EndpointResult[]): void {
    this.logTable(endpoints.slice(0, TABLE_ROWS), { json: false }, [
      ['PROJECT', ({ project_name: name, project_id: id }) => escapeLine(name ?? id, NAME_CHARS)],
      [
        'ENDPOINT',
        ({ endpoint_name: name, endpoint_id: id }) => escapeLine(name ?? id, NAME_CHARS),
      ],
      ['DELIVERIES', ({ deliveries }) => deliveries.toLocaleString('en-US')],
      ['OUTCOME', ({ outcome }) => OUTCOMES[outcome]],
    ]);
    const more = endpoints.length - TABLE_ROWS;
    this.log(more > 0 ? `… and ${more} more lines; --json shows all\n` : '');
  }
}

function deliveriesText(count: number): string {
  return counted(count, 'event delivery', 'event deliveries');
}

function requestOf(
  flags: Readonly<
    Record<'status' | 'time' | 'project-id' | 'event-id' | 'endpoint-id', string | undefined>
  > &
    Readonly<Record<'force' | 'dry-run', boolean>>,
) {
  const { status, time } = flags;
  if (status === undefined || time === undefined) {
    const missing = Object.entries({ '--status': status, '--time': time }).flatMap(
      ([name, value]) => (value === undefined ? [name] : []),
    );
    throw wrongUse(
      `gateway retry needs ${missing.join(' and ')}`,
      `set both, as in \`gateway retry --status failure --time 2h\`; statuses are ${STATUSES.join(', ')}`,
    );
  }
  const wanted = oneOf('--status', status, STATUSES)!;
  if (wanted === 'success' && !flags.force && !flags['dry-run'])
    throw wrongUse(
      'event deliveries with status success were delivered already; if re-queued, their endpoints receive them again',
      'add --force to deliver them again; --dry-run counts them first',
    );
  return {
    status: wanted,
    from: new Date(Math.max(0, Date.now() - parseDuration('--time', time))),
    projectId: idOf('--project-id', flags['project-id']),
    eventId: idOf('--event-id', flags['event-id']),
    endpointId: idOf('--endpoint-id', flags['endpoint-id']),
  };
}

/**
 * Returns the projects with the ids of a request. An event is looked up on each shard.
 *
 * @throws GatewayError `not_found` if an id is unknown
 */
async function findProjects(
  shards: Shards,
  ids: Partial<Readonly<Record<'projectId' | 'eventId' | 'endpointId', string | undefined>>>,
): Promise<RetryProject[]> {
  const [{ findRetryProjects }, { bothPlanes }] = await Promise.all([
    import('@gateway/store/deliveries'),
    import('@gateway/store/postgres'),
  ]);
  const { eventId, projectId } = ids;
  if (eventId === undefined) return findRetryProjects(bothPlanes(shards.control), ids);
  let missing: unknown;
  const found = await searchShards(await shardsOf(shards, projectId), ({ planes }) =>
    findRetryProjects(planes, ids).catch((error: unknown) => {
      if (!isGatewayError(error, 'not_found')) throw error;
      missing = error;
      return undefined;
    }),
  );
  if (!found) throw missing;
  return found;
}
