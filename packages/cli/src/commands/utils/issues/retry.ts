import { GatewayError } from '@gateway/core/errors';
import { breakerLines, findBehindBreakers, probeBreaker } from '../../../app/breakers.js';
import {
  argument,
  Flags,
  GatewayCommand,
  idOf,
  jsonFlag,
  withShards,
} from '../../../app/gateway-command.js';
import { shardsOf } from '../../../app/stores.js';
import { counted } from '../../../output/table.js';

export default class UtilsIssuesRetry extends GatewayCommand {
  static override description =
    'Sends the deliveries to the endpoint that failed or wait since the issue was first seen. A waiting delivery keeps its remaining attempts. ' +
    'If the circuit breaker of the endpoint is open, one delivery tries the endpoint, and the others wait until it closes. The command can be interrupted and repeated at any time.';
  static override examples = [
    '<%= config.bin %> utils issues retry 019ab3c4-5d6e-7f70-9123-456789abcdef --dry-run',
  ];
  static override flags = {
    'dry-run': Flags.boolean({ summary: 'Count the deliveries, without changing anything.' }),
    ...jsonFlag,
  };
  static override args = { id: argument('Id of the issue.') };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsIssuesRetry);
    const dryRun = flags['dry-run'];
    const id = idOf('the argument', args.id);
    const [{ findIssue }, { retryDeliveries }] = await Promise.all([
      import('@gateway/store/counts/issues'),
      import('@gateway/store/deliveries'),
    ]);
    const sums = { due: 0, held: 0, skipped: 0 };
    const { config } = this.resolve(flags);
    const behind = await withShards(config, async (shards) => {
      const issue = await findIssue(shards.control.pool, id);
      if (!issue) throw new GatewayError('not_found', { thing: 'issue', id });
      const dueInMs = dryRun ? 0 : await probeBreaker(config, issue.endpoint_id);
      const selection = {
        status: ['failure', 'retry', 'scheduled'] as const,
        from: new Date(0),
        changedSince: issue.first_seen_at,
        endpointId: issue.endpoint_id,
        projects: [{ id: issue.project_id }],
      };
      for (const { planes } of await shardsOf(shards, issue.project_id))
        for await (const { tallies } of retryDeliveries(planes, selection, { dryRun, dueInMs }))
          for (const { outcome, count } of tallies)
            sums[outcome === 'due' || outcome === 'held' ? outcome : 'skipped'] += count;
      return findBehindBreakers(config, [{ ...issue, deliveries: sums.due }]);
    });
    const requeued = sums.due + sums.held;
    if (flags.json)
      return this.log(
        JSON.stringify(
          { dry_run: dryRun, requeued, skipped: sums.skipped, behind_breakers: behind },
          null,
          2,
        ),
      );
    const text = counted(requeued, 'event delivery', 'event deliveries');
    this.log(dryRun ? `${text} would be re-queued` : `re-queued ${text}`);
    for (const line of breakerLines(behind)) this.logToStderr(line);
    if (sums.skipped > 0)
      this.logToStderr(
        `${counted(sums.skipped, 'event delivery', 'event deliveries')} skipped: already due, held for a paused endpoint, or to an inactive endpoint`,
      );
  }
}
