import { Flags, GatewayCommand, withShards, wrongUse } from '../../../app/gateway-command.js';
import { counted } from '../../../output/table.js';
import { chosenArgs, chosenBy, chosenFlags, chosenPages } from '../../../quarantine/selection.js';

export default class UtilsQuarantineDiscard extends GatewayCommand {
  static override description =
    'Marks messages as discarded: they are kept and can be shown, but not replayed. Does not ask for confirmation; --all without ' +
    'a filter needs --yes.';
  static override examples = [
    '<%= config.bin %> utils quarantine discard 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils quarantine discard --all --code empty --dry-run',
    '<%= config.bin %> utils quarantine discard --all --yes',
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
    const { discardQuarantinedMessages } = await import('@gateway/store/quarantine');
    const totals = { discarded: 0, others: 0 };
    await withShards(this.resolve(flags).config, async (shards) => {
      for await (const { planes, entries } of await chosenPages(shards, chosen)) {
        const waiting = entries.filter(({ status }) => status === 'quarantined');
        const refs = waiting.map(({ project_id: projectId, id }) => ({ projectId, id }));
        const done = dryRun
          ? refs.length
          : (await discardQuarantinedMessages(planes.data, refs)).length;
        totals.discarded += done;
        totals.others += entries.length - done;
      }
    });
    this.log(`${dryRun ? 'would discard' : 'discarded'} ${counted(totals.discarded, 'message')}`);
    if (totals.others > 0)
      this.logToStderr(
        `${counted(totals.others, 'message')} skipped: already replayed or discarded`,
      );
  }
}
