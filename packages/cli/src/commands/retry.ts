import * as Flags from '@oclif/core/flags';
import { GatewayCommand, jsonFlag } from '../app/gateway-command.js';
import { noteInterruption } from '../app/signals.js';
import { progressBar } from '../output/progress.js';
import { deliveries, remarks, resultRecord, resultTable, RetryResult } from '../retry/result.js';
import { retryRequest, STATUSES } from '../retry/selection.js';
import { withDatabase } from '../app/database.js';

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
    const request = retryRequest(flags);
    const [json, dryRun] = [flags['json'] === true, flags['dry-run'] === true];
    const { config } = this.resolve(flags);
    const { findRetryProjects, retryDeliveries } = await import('@gateway/store/deliveries');
    const result = new RetryResult();
    const progress = progressBar({ silent: json });
    const interruption = noteInterruption();
    const projects = await withDatabase(config, async (database) => {
      const found = await findRetryProjects(database.pool, request);
      for await (const { tallies, done } of retryDeliveries(database.pool, { ...request, projects: found }, { dryRun })) {
        result.add(tallies);
        progress.show(done, deliveries(result.count('due', 'held')));
        if (interruption.status !== 0) break;
      }
      return found;
    })
      .finally(() => {
        interruption.done();
        progress.end();
      })
      .catch((error: unknown) => {
        const count = dryRun ? 0 : result.count('due', 'held');
        if (count > 0) this.logToStderr(`re-queued ${deliveries(count)} before it failed; running it again goes on with the rest`);
        throw error;
      });
    const stopped = interruption.status !== 0;
    if (json) this.log(JSON.stringify(resultRecord(result, { request, projects, dryRun, stopped }), null, 2));
    else {
      const table = dryRun ? resultTable(result, projects) : '';
      if (table) this.log(`${table}\n`);
      this.log(summaryOf(result, request, dryRun));
    }
    for (const remark of remarks(result)) this.logToStderr(remark);
    if (!stopped) return;
    this.logToStderr(
      `stopped before the end; ${dryRun ? 'nothing was changed' : 'what was re-queued stays so, and running it again goes on with the rest'}`,
    );
    this.exit(interruption.status);
  }
}

function summaryOf(result: RetryResult, { status, time }: { status: string; time: string }, dryRun: boolean): string {
  const count = result.count('due', 'held');
  if (result.tallies.length === 0) return `nothing to re-queue: no event delivery of the last ${time} has status ${status}`;
  return dryRun ? `${deliveries(count)} would be re-queued` : `re-queued ${deliveries(count)}`;
}
