import { breakerLines, noRetries, retrySteps } from '../../../app/retries.js';
import {
  command,
  findIn,
  idArgument,
  jsonFlag,
  projectFlag,
  switchFlag,
} from '../../../app/gateway-command.js';
import { counted } from '../../../output/table.js';

export default command({
  description:
    'Sends the deliveries to the endpoint that failed or wait since the issue was first seen. A waiting delivery keeps its remaining attempts. ' +
    'If the circuit breaker of the endpoint is open, one delivery tries the endpoint, and the others wait until it closes. The command can be interrupted and repeated at any time.',
  examples: ['gateway utils issues retry 019ab3c4-5d6e-7f70-9123-456789abcdef --dry-run'],
  flags: {
    'dry-run': switchFlag('Count the deliveries, without changing anything.'),
    ...projectFlag,
    ...jsonFlag,
  },
  args: idArgument('Id of the issue.'),
  async run({ args: { id }, flags, api, json, log, note }) {
    const dryRun = flags['dry-run'];
    const { due, held, left, behind } = await api(async (all) => {
      const { issues } = (await findIn(all, flags, (it) => it.issues.get(id))).api;
      return retrySteps(noRetries(), (after) => issues.retry(id, { dry_run: dryRun, after }));
    });
    const requeued = due + held;
    if (flags.json)
      return json({ dry_run: dryRun, requeued, skipped: left, behind_breakers: behind });
    const text = counted(requeued, 'event delivery', 'event deliveries');
    log(dryRun ? `${text} would be re-queued` : `re-queued ${text}`);
    for (const line of breakerLines(behind)) note(line);
    if (left > 0)
      note(
        `${counted(left, 'event delivery', 'event deliveries')} skipped: already due, held for a paused endpoint, or to an inactive endpoint`,
      );
  },
});
