import type { Project } from '@gateway/client';
import { addRetries, breakerLines, noRetries, retrySteps, type RetrySums } from '../app/retries.js';
import {
  command,
  findIn,
  idFlag,
  inEach,
  jsonFlag,
  parseDuration,
  projectFlag,
  projectsOf,
  switchFlag,
  valueFlag,
  wordFlag,
  wrongUse,
} from '../app/gateway-command.js';
import { noteInterruption } from '../app/signals.js';
import { counted } from '../output/table.js';

const STATUSES = ['failure', 'discarded', 'retry', 'scheduled', 'processing', 'success'] as const;
const TABLE_ROWS = 20;

export default command({
  description:
    'Recovers deliveries after an outage; it does not replace the retry policy of an endpoint. --time refers to the time of the messages, ' +
    'so choose a longer range if messages waited in a topic or queue. Each delivery gets one attempt at once; if its retries are ' +
    'used up and the attempt fails, the delivery fails again. Deliveries to paused endpoints wait until the endpoint is active; ' +
    'those to inactive and deleted endpoints, and those that an agent is sending, are left alone. With --endpoint-id, one delivery tries an endpoint whose circuit breaker is open; the others wait until it closes. The command can be interrupted and repeated at any time.',
  examples: [
    'gateway retry --status failure --time 2h --dry-run',
    'gateway retry --status failure --time 1h30m --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway retry --status success --time 10m --event-id 019ab3c4-5d6e-8f70-9123-456789abcdef --force',
  ],
  flags: {
    status: wordFlag(
      '<status>',
      `Status of the event deliveries to re-queue: ${STATUSES.join(', ')}.`,
      STATUSES,
    ),
    time: valueFlag(
      '<duration>',
      'How far back to look: integers with the units d, h, m, s and ms, as in 1h30m.',
    ),
    ...projectFlag,
    'event-id': idFlag('Only event deliveries of this event.'),
    'endpoint-id': idFlag('Only event deliveries to this endpoint.'),
    force: switchFlag('Required with --status success: deliver again.'),
    'dry-run': switchFlag('Count by project, without changing anything.'),
    ...jsonFlag,
  },
  async run({ flags, api, exit, json, log, note, table }) {
    const { 'dry-run': dryRun, 'event-id': eventId, 'endpoint-id': endpointId } = flags;
    const { status, time } = requestOf(flags);
    const startDate = new Date(
      Math.max(0, Date.now() - parseDuration('--time', time)),
    ).toISOString();
    const query = { status, startDate, eventId, endpointId, dry_run: dryRun };
    const sums = new Map<Project, RetrySums>();
    const total = () => {
      const all = noRetries();
      for (const it of sums.values()) addRetries(all, it);
      return all;
    };
    const showProgress = (text: string) => {
      if (process.stderr.isTTY && !flags.json) process.stderr.write(`\r\x1b[2K${text}`);
    };
    const interruption = noteInterruption();
    const failure: unknown = await api(async (all) => {
      // Only that of the event or endpoint, if one is named.
      const projects =
        eventId === undefined && endpointId === undefined
          ? await projectsOf(all, flags)
          : [
              (
                await findIn<unknown>(all, flags, ({ events, endpoints }) =>
                  eventId === undefined ? endpoints.get(endpointId!) : events.get(eventId),
                )
              ).project,
            ];
      const done = new Map<Project, number>();
      await inEach(all, projects, async ({ eventDeliveries }, project) => {
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
      note(
        `re-queued ${requeuedText(total())} or more before the failure; run the command again to continue with the rest`,
      );
    const stopped = interruption.status !== 0;
    const { due, held, left, behind } = total();
    const found = [...sums].filter(([, it]) => it.due + it.held + it.left > 0);
    // Other projects may have been retried, so their counts are shown.
    if (failure && found.length === 0) throw failure as Error;
    if (flags.json) {
      const projects = found.map(([{ uid, name }, { behind: _, ...counts }]) => ({
        project_id: uid,
        project_name: name,
        ...counts,
      }));
      const record = { requeued: due + held, held, skipped: left, behind_breakers: behind };
      json({ status, from: startDate, dry_run: dryRun, stopped, ...record, projects });
    } else if (found.length === 0) {
      log(`nothing to re-queue: no event delivery of the last ${time} has status ${status}`);
    } else {
      if (dryRun && found.length > 1) {
        table(found.slice(0, TABLE_ROWS), [
          ['PROJECT', ([{ name }]) => name, 40],
          ['RE-QUEUED', ([, it]) => (it.due + it.held).toLocaleString('en-US')],
          ['SKIPPED', ([, it]) => it.left.toLocaleString('en-US')],
        ]);
        const more = found.length - TABLE_ROWS;
        log(more > 0 ? `… and ${more} more lines; --json shows all\n` : '');
      }
      const text = requeuedText({ due, held });
      log(dryRun ? `${text} would be re-queued` : `re-queued ${text}`);
    }
    if (!flags.json) for (const line of breakerLines(behind)) note(line);
    if (held > 0) note(`${deliveriesText(held)} held until the endpoint is no longer paused`);
    if (left > 0)
      note(
        `${deliveriesText(left)} skipped: the endpoint is inactive or deleted, an agent is sending them, or they are already due or held`,
      );
    if (failure) throw failure as Error;
    if (!stopped) return;
    const kept = dryRun
      ? 'nothing was changed'
      : 're-queued deliveries stay re-queued; run the command again to continue with the rest';
    note(`stopped before the end; ${kept}`);
    exit(interruption.status);
  },
});

function deliveriesText(count: number): string {
  return counted(count, 'event delivery', 'event deliveries');
}

function requeuedText({ due, held }: Pick<RetrySums, 'due' | 'held'>): string {
  return deliveriesText(due + held);
}

/** Throws `wrong_use`. */
function requestOf<Status>(flags: {
  readonly status: Status | undefined;
  readonly time: string | undefined;
  readonly force: boolean;
  readonly 'dry-run': boolean;
}): { readonly status: Status; readonly time: string } {
  const { status: wanted, time } = flags;
  if (wanted === undefined || time === undefined) {
    const missing = Object.entries({ '--status': wanted, '--time': time }).flatMap(
      ([name, value]) => (value === undefined ? [name] : []),
    );
    throw wrongUse(
      `gateway retry needs ${missing.join(' and ')}`,
      `set both, as in \`gateway retry --status failure --time 2h\`; statuses are ${STATUSES.join(', ')}`,
    );
  }
  if (wanted === 'success' && !flags.force && !flags['dry-run'])
    throw wrongUse(
      'event deliveries with status success were delivered already; if re-queued, their endpoints receive them again',
      'add --force to deliver them again; --dry-run counts them first',
    );
  return { status: wanted, time };
}
