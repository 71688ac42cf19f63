import * as Flags from '@oclif/core/flags';
import type { RetriedStatus, RetryOutcome, RetryTally } from '@gateway/store/deliveries';
import { withDatabase } from '../app/database.js';
import { parseDuration } from '../app/duration.js';
import { idOf, oneOf, wrongUse } from '../app/flag-values.js';
import { GatewayCommand, jsonFlag } from '../app/gateway-command.js';
import { noteInterruption } from '../app/signals.js';
import { escapeLine } from '../output/escape-terminal.js';
import { progressBar } from '../output/progress.js';
import { counted } from '../output/record.js';
import { answerTable, type Column } from '../output/table.js';

/** The statuses that `--status` takes, the usual one first. */
const STATUSES: readonly RetriedStatus[] = ['failure', 'discarded', 'retry', 'scheduled', 'success'];

/** What happened to deliveries, in a table and as a sentence of its own. */
const OUTCOMES: Readonly<Record<RetryOutcome, readonly [cell: string, remark?: string]>> = {
  due: ['re-queued'],
  held: ['held, the endpoint is paused', 'held until the endpoint is no longer paused'],
  inactive: ['skipped, the endpoint is inactive', 'skipped: the endpoint is inactive; activate it first'],
  deleted: ['skipped, the endpoint was deleted', 'skipped: the endpoint was deleted'],
  waiting: ['skipped, waiting already', 'skipped: waiting for an agent already, or for the paused endpoint'],
};

const TABLE_ROWS = 20;
const NAME_CHARS = 40;

/** The deliveries to one endpoint with one outcome. */
interface EndpointResult {
  readonly project_id: string;
  readonly project_name: string | null;
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly outcome: RetryOutcome;
  readonly deliveries: number;
}

const columns: readonly Column<EndpointResult>[] = [
  ['PROJECT', ({ project_name: name, project_id: id }) => escapeLine(name ?? id, NAME_CHARS)],
  ['ENDPOINT', ({ endpoint_name: name, endpoint_id: id }) => escapeLine(name ?? id, NAME_CHARS)],
  ['DELIVERIES', ({ deliveries }) => deliveries.toLocaleString('en-US')],
  ['OUTCOME', ({ outcome }) => OUTCOMES[outcome][0]],
];

export default class Retry extends GatewayCommand {
  static override description =
    'For recovery after an outage; it does not replace the retry policy of an endpoint. --time looks at the time of the messages, as the log of event deliveries does, so ' +
    'for messages that lay in a topic or queue for long it is to reach back that far. Each delivery gets an attempt at once; one whose policy is used up fails again if ' +
    'that attempt does. Paused endpoints get theirs when they are active again; inactive and deleted ones none. It can be stopped and run again at any time.';
  static override examples = [
    '<%= config.bin %> retry --status failure --time 2h --dry-run',
    '<%= config.bin %> retry --status failure --time 1h30m --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    '<%= config.bin %> retry --status success --time 10m --event-id 019ab3c4-5d6e-8f70-9123-456789abcdef --force',
  ];
  static override flags = {
    status: Flags.string({ helpValue: '<status>', summary: `Status of the event deliveries to re-queue: ${STATUSES.join(', ')}.` }),
    time: Flags.string({
      helpValue: '<duration>',
      summary: 'How far back to look: integers with the units d, h, m, s and ms, as in 1h30m.',
    }),
    'project-id': Flags.string({ helpValue: '<id>', summary: 'Event deliveries of this project. [default: all projects]' }),
    'event-id': Flags.string({ helpValue: '<id>', summary: 'Event deliveries of this event.' }),
    'endpoint-id': Flags.string({ helpValue: '<id>', summary: 'Event deliveries to this endpoint.' }),
    force: Flags.boolean({ summary: 'With --status success: deliver again what was delivered.' }),
    'dry-run': Flags.boolean({ summary: 'Change nothing; count by project and endpoint.' }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Retry);
    const { json, 'dry-run': dryRun } = flags;
    const request = requestOf(flags);
    const { config } = this.resolve(flags);
    const { findRetryProjects, retryDeliveries } = await import('@gateway/store/deliveries');
    const tallies = new Map<string, RetryTally>();
    const count = (...outcomes: readonly RetryOutcome[]) =>
      [...tallies.values()].reduce((sum, it) => sum + (outcomes.includes(it.outcome) ? it.count : 0), 0);
    const requeued = () => deliveriesText(count('due', 'held'));
    const progress = progressBar({ silent: json });
    const interruption = noteInterruption();
    const projects = await withDatabase(config, async (database) => {
      const found = await findRetryProjects(database.pool, request);
      for await (const batch of retryDeliveries(database.pool, { ...request, projects: found }, { dryRun })) {
        for (const tally of batch.tallies) {
          const key = `${tally.projectId} ${tally.endpointId} ${tally.outcome}`;
          tallies.set(key, { ...tally, count: tally.count + (tallies.get(key)?.count ?? 0) });
        }
        progress.show(batch.done, requeued());
        if (interruption.status !== 0) break;
      }
      return found;
    })
      .finally(() => {
        interruption.done();
        progress.end();
      })
      .catch((error: unknown) => {
        if (!dryRun && count('due', 'held') > 0)
          this.logToStderr(`re-queued ${requeued()} before it failed; running it again goes on with the rest`);
        throw error;
      });
    const stopped = interruption.status !== 0;
    const names = new Map(projects.map(({ id, name }) => [id, name]));
    const endpoints = [...tallies.values()]
      .sort((a, b) => b.count - a.count)
      .map((it): EndpointResult => ({
        ...{ project_id: it.projectId, project_name: names.get(it.projectId) ?? null },
        ...{ endpoint_id: it.endpointId, endpoint_name: it.endpointName },
        ...{ outcome: it.outcome, deliveries: it.count },
      }));
    if (json) {
      const [inactive, deleted, waiting] = [count('inactive'), count('deleted'), count('waiting')];
      const [done, held] = [count('due', 'held'), count('held')];
      const { status, from } = request;
      const record = { status, from, dry_run: dryRun, stopped, requeued: done, held, skipped: { inactive, deleted, waiting }, endpoints };
      this.log(JSON.stringify(record, null, 2));
    } else {
      if (dryRun && endpoints.length > 1) this.log(`${tableOf(endpoints)}\n`);
      if (endpoints.length === 0) this.log(`nothing to re-queue: no event delivery of the last ${flags.time} has status ${request.status}`);
      else this.log(dryRun ? `${requeued()} would be re-queued` : `re-queued ${requeued()}`);
    }
    for (const [outcome, [, remark]] of Object.entries(OUTCOMES) as [RetryOutcome, (typeof OUTCOMES)[RetryOutcome]][])
      if (remark && count(outcome) > 0) this.logToStderr(`${deliveriesText(count(outcome))} ${remark}`);
    if (!stopped) return;
    const kept = dryRun ? 'nothing was changed' : 'what was re-queued stays so, and running it again goes on with the rest';
    this.logToStderr(`stopped before the end; ${kept}`);
    this.exit(interruption.status);
  }
}

function tableOf(endpoints: readonly EndpointResult[]): string {
  const more = endpoints.length - TABLE_ROWS;
  const table = answerTable(endpoints.slice(0, TABLE_ROWS), columns, { json: false });
  return more > 0 ? `${table}\n… and ${more} more lines; --json shows all` : table;
}

function deliveriesText(count: number): string {
  return counted(count, 'event delivery', 'event deliveries');
}

/** What the flags ask for. Throws `wrong_use` with what is allowed. */
function requestOf(
  flags: Readonly<Record<'status' | 'time' | 'project-id' | 'event-id' | 'endpoint-id', string | undefined>> & { force: boolean },
) {
  const { status, time } = flags;
  if (status === undefined || time === undefined) {
    const missing = Object.entries({ '--status': status, '--time': time }).flatMap(([name, value]) => (value === undefined ? [name] : []));
    throw wrongUse(
      `gateway retry needs ${missing.join(' and ')}`,
      `give both, as in \`gateway retry --status failure --time 2h\`; statuses are ${STATUSES.join(', ')}`,
    );
  }
  if (status === 'processing')
    throw wrongUse(
      'event deliveries with status processing are held by an agent, which is sending them, and cannot be re-queued',
      'wait: what a dead agent held is moved on by another one within seconds',
    );
  const wanted = oneOf('--status', status, STATUSES)!;
  if (wanted === 'success' && !flags.force)
    throw wrongUse(
      'event deliveries with status success were delivered: re-queued, their endpoints get them a second time',
      'add --force if that is meant; --dry-run with it counts them first',
    );
  return {
    status: wanted,
    from: new Date(Math.max(0, Date.now() - parseDuration('--time', time))),
    projectId: idOf('--project-id', flags['project-id']),
    eventId: idOf('--event-id', flags['event-id']),
    endpointId: idOf('--endpoint-id', flags['endpoint-id']),
  };
}
