import {
  Flags,
  GatewayCommand,
  inEach,
  projectsOf,
  wrongUse,
} from '../../../app/gateway-command.js';
import { counted } from '../../../output/table.js';
import {
  batchOf,
  chosenArgs,
  chosenBy,
  chosenFlags,
  findMessages,
} from '../../../quarantine/selection.js';

export default class UtilsQuarantineDiscard extends GatewayCommand {
  static override description =
    'Marks messages as discarded: they are kept and can be shown, but not replayed. Does not ask for confirmation; --all without ' +
    'a filter needs --yes.';
  static override examples = [
    'gateway utils quarantine discard 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine discard --all --code empty --dry-run',
    'gateway utils quarantine discard --all --yes',
  ];
  static override flags = {
    ...chosenFlags,
    yes: Flags.boolean({ summary: 'Confirm --all without a filter.' }),
  };
  static override args = chosenArgs;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineDiscard);
    const chosen = chosenBy(flags, args.id);
    const dryRun = flags['dry-run'];
    if ('filters' in chosen && chosen.filters.length === 0 && !flags.yes && !dryRun) {
      throw wrongUse(
        '--all without a filter would discard every quarantined message of every project',
        'add --yes to confirm, or a filter such as --project-id, --code or --time; --dry-run counts them',
      );
    }
    const totals = { discarded: 0, others: 0 };
    await this.api(flags, async (api) => {
      if ('ids' in chosen) {
        for (const { api: of, found } of await findMessages(api, chosen)) {
          const isWaiting = found.status === 'quarantined';
          if (isWaiting && !dryRun) await of.quarantine.discard(found.uid);
          totals[isWaiting ? 'discarded' : 'others']++;
        }
        return;
      }
      const query = { ...batchOf(chosen.selection), dry_run: dryRun };
      await inEach(api, await projectsOf(api, chosen.projectId), async ({ quarantine }) => {
        for (let after: string | null | undefined; after !== null;) {
          const step = await quarantine.batchDiscard({ ...query, after });
          totals.discarded += step.count;
          after = step.next;
        }
      });
    });
    this.log(`${dryRun ? 'would discard' : 'discarded'} ${counted(totals.discarded, 'message')}`);
    if (totals.others > 0)
      this.logToStderr(
        `${counted(totals.others, 'message')} skipped: already replayed or discarded`,
      );
  }
}
