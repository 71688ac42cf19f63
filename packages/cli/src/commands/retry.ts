import type { GatewayClient, Project } from '@gateway/client';
import { addRetries, breakerLines, noRetries, retrySteps, type RetrySums } from '../app/retries.js';
import {
  findIn,
  Flags,
  GatewayCommand,
  idOf,
  inEach,
  jsonFlag,
  oneOf,
  parseDuration,
  projectFlag,
  projectIdOf,
  projectsOf,
  valueFlag,
  wrongUse,
} from '../app/gateway-command.js';
import { noteInterruption } from '../app/signals.js';
import { escapeLine } from '../output/escape-terminal.js';
import { counted } from '../output/table.js';

const STATUSES = ['failure', 'discarded', 'retry', 'scheduled', 'processing', 'success'] as const;
const TABLE_ROWS = 20;
const NAME_CHARS = 40;

export default class Retry extends GatewayCommand {
  static override description =
    'Recovers deliveries after an outage; it does not replace the retry policy of an endpoint. --time refers to the time of the messages, ' +
    'so choose a longer range if messages waited in a topic or queue. Each delivery gets one attempt at once; if its retries are ' +
    'used up and the attempt fails, the delivery fails again. Deliveries to paused endpoints wait until the endpoint is active; ' +
    'those to inactive and deleted endpoints, and those that an agent is sending, are left alone. With --endpoint-id, one delivery tries an endpoint whose circuit breaker is open; the others wait until it closes. The command can be interrupted and repeated at any time.';
  static override examples = [
    'gateway retry --status failure --time 2h --dry-run',
    'gateway retry --status failure --time 1h30m --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway retry --status success --time 10m --event-id 019ab3c4-5d6e-8f70-9123-456789abcdef --force',
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
    ...projectFlag,
    'event-id': valueFlag('<id>', 'Only event deliveries of this event.'),
    'endpoint-id': valueFlag('<id>', 'Only event deliveries to this endpoint.'),
    force: Flags.boolean({ summary: 'Required with --status success: deliver again.' }),
    'dry-run': Flags.boolean({ summary: 'Count by project, without changing anything.' }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Retry);
    const { json, 'dry-run': dryRun } = flags;
    const { projectId, ...request } = requestOf(flags);
    const query = { ...request, dry_run: dryRun };
    const sums = new Map<Project, RetrySums>();
    const total = () => {
      const all = noRetries();
      for (const it of sums.values()) addRetries(all, it);
      return all;
    };
    const showProgress = (text: string) => {
      if (process.stderr.isTTY && !json) process.stderr.write(`\r\x1b[2K${text}`);
    };
    const interruption = noteInterruption();
    const failure: unknown = await this.api(flags, async (api) => {
      const projects = await reached(api, projectId, request);
      const done = new Map<Project, number>();
      await inEach(api, projects, async ({ eventDeliveries }, project) => {
        if (interruption.status !== 0) return;
        const own = noRetries();
        sums.set(project, own);
        const step = (after: string | undefined) => eventDeliveries.batchRetry({ ...query, after });
        await retrySteps(own, step, (progress) => {
          done.set(project, progress);
          const share = [...done.values()].reduce((sum, it) => sum + it, 0) / projects.length;
          showProgress(`${Math.floor(share * 100)} %  ${requeuedText(total())}`);
          return interruption.status === 0;
        });
      });
    })
      .finally(() => {
        interruption.done();
        showProgress('');
      })
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    if (failure && !dryRun && sums.size > 0)
      this.logToStderr(
        `re-queued ${requeuedText(total())} or more before the failure; run the command again to continue with the rest`,
      );
    const stopped = interruption.status !== 0;
    const { due, held, left, behind } = total();
    const found = [...sums].filter(([, it]) => it.due + it.held + it.left > 0);
    // Other projects may have been retried, so their counts are shown.
    if (failure && found.length === 0) throw failure as Error;
    if (json) {
      const { status, startDate: from } = request;
      const projects = found.map(([{ uid, name }, { behind: _, ...counts }]) => ({
        ...{ project_id: uid, project_name: name },
        ...counts,
      }));
      const record = { requeued: due + held, held, skipped: left, behind_breakers: behind };
      this.log(
        JSON.stringify({ status, from, dry_run: dryRun, stopped, ...record, projects }, null, 2),
      );
    } else if (found.length === 0) {
      this.log(
        `nothing to re-queue: no event delivery of the last ${flags.time} has status ${request.status}`,
      );
    } else {
      if (dryRun && found.length > 1) this.logProjects(found);
      const text = requeuedText({ due, held });
      this.log(dryRun ? `${text} would be re-queued` : `re-queued ${text}`);
    }
    if (!json) for (const line of breakerLines(behind)) this.logToStderr(line);
    if (held > 0)
      this.logToStderr(`${deliveriesText(held)} held until the endpoint is no longer paused`);
    if (left > 0)
      this.logToStderr(
        `${deliveriesText(left)} skipped: the endpoint is inactive or deleted, an agent is sending them, or they are already due or held`,
      );
    if (failure) throw failure as Error;
    if (!stopped) return;
    const kept = dryRun
      ? 'nothing was changed'
      : 're-queued deliveries stay re-queued; run the command again to continue with the rest';
    this.logToStderr(`stopped before the end; ${kept}`);
    this.exit(interruption.status);
  }

  private logProjects(found: readonly (readonly [Project, RetrySums])[]): void {
    this.logTable(found.slice(0, TABLE_ROWS), { json: false }, [
      ['PROJECT', ([{ name }]) => escapeLine(name, NAME_CHARS)],
      ['RE-QUEUED', ([, { due, held }]) => (due + held).toLocaleString('en-US')],
      ['SKIPPED', ([, { left }]) => left.toLocaleString('en-US')],
    ]);
    const more = found.length - TABLE_ROWS;
    this.log(more > 0 ? `… and ${more} more lines; --json shows all\n` : '');
  }
}

function deliveriesText(count: number): string {
  return counted(count, 'event delivery', 'event deliveries');
}

function requeuedText({ due, held }: Pick<RetrySums, 'due' | 'held'>): string {
  return deliveriesText(due + held);
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
  const from = new Date(Math.max(0, Date.now() - parseDuration('--time', time)));
  return {
    status: wanted,
    startDate: from.toISOString(),
    projectId: projectIdOf(flags),
    eventId: idOf('--event-id', flags['event-id']),
    endpointId: idOf('--endpoint-id', flags['endpoint-id']),
  };
}

/**
 * Only that of the event or endpoint, if one is named.
 *
 * @throws an error with the code `not_found` if an id is unknown
 */
async function reached(
  api: GatewayClient,
  projectId: string | undefined,
  { eventId, endpointId }: Readonly<Record<'eventId' | 'endpointId', string | undefined>>,
): Promise<readonly Project[]> {
  if (eventId === undefined && endpointId === undefined) return projectsOf(api, projectId);
  const { project } = await findIn<unknown>(api, projectId, ({ events, endpoints }) =>
    eventId === undefined ? endpoints.get(endpointId!) : events.get(eventId),
  );
  return [project];
}
