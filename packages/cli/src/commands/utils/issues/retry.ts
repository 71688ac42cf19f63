import { breakerLines, noRetries, retrySteps } from '../../../app/retries.js';
import {
  argument,
  findIn,
  Flags,
  GatewayCommand,
  idOf,
  jsonFlag,
  projectFlag,
  projectIdOf,
} from '../../../app/gateway-command.js';
import { counted } from '../../../output/table.js';

export default class UtilsIssuesRetry extends GatewayCommand {
  static override description =
    'Sends the deliveries to the endpoint that failed or wait since the issue was first seen. A waiting delivery keeps its remaining attempts. ' +
    'If the circuit breaker of the endpoint is open, one delivery tries the endpoint, and the others wait until it closes. The command can be interrupted and repeated at any time.';
  static override examples = [
    'gateway utils issues retry 019ab3c4-5d6e-7f70-9123-456789abcdef --dry-run',
  ];
  static override flags = {
    'dry-run': Flags.boolean({ summary: 'Count the deliveries, without changing anything.' }),
    ...projectFlag,
    ...jsonFlag,
  };
  static override args = { id: argument('Id of the issue.') };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsIssuesRetry);
    const dryRun = flags['dry-run'];
    const id = idOf('the argument', args.id);
    const { due, held, left, behind } = await this.api(flags, async (api) => {
      const { issues } = (await findIn(api, projectIdOf(flags), (it) => it.issues.get(id))).api;
      return retrySteps(noRetries(), (after) => issues.retry(id, { dry_run: dryRun, after }));
    });
    const requeued = due + held;
    if (flags.json) {
      const record = { dry_run: dryRun, requeued, skipped: left, behind_breakers: behind };
      return this.log(JSON.stringify(record, null, 2));
    }
    const text = counted(requeued, 'event delivery', 'event deliveries');
    this.log(dryRun ? `${text} would be re-queued` : `re-queued ${text}`);
    for (const line of breakerLines(behind)) this.logToStderr(line);
    if (left > 0)
      this.logToStderr(
        `${counted(left, 'event delivery', 'event deliveries')} skipped: already due, held for a paused endpoint, or to an inactive endpoint`,
      );
  }
}
