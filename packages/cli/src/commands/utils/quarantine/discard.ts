import { command, switchFlag, wrongUse } from '../../../app/gateway-command.js';
import { counted } from '../../../output/table.js';
import {
  chosenArgs,
  chosenBy,
  chosenFlags,
  filtersOf,
  workOn,
} from '../../../messages/selection.js';

export default command({
  description:
    'Marks messages as discarded: they are kept and can be shown, but not replayed. Does not ask for confirmation; --all without ' +
    'a filter needs --yes.',
  examples: [
    'gateway utils quarantine discard 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine discard --all --code empty --dry-run',
    'gateway utils quarantine discard --all --yes',
  ],
  flags: {
    ...chosenFlags,
    yes: switchFlag('Confirm --all without a filter.'),
  },
  args: chosenArgs,
  async run({ args, flags, api, log, note }) {
    const chosen = chosenBy(flags, args.id);
    const dryRun = flags['dry-run'];
    if (!chosen && filtersOf(flags).length === 0 && !flags.yes && !dryRun)
      throw wrongUse(
        '--all without a filter would discard every quarantined message of every project',
        'add --yes to confirm, or a filter such as --project-id, --code or --time; --dry-run counts them',
      );
    let [discarded, others] = [0, 0];
    await api((all) =>
      workOn(all, chosen, flags, {
        async one({ quarantine }, { uid, status }) {
          if (status !== 'quarantined') return void others++;
          if (!dryRun) await quarantine.discard(uid);
          discarded++;
        },
        async batch({ quarantine }, query) {
          const { count, next } = await quarantine.batchDiscard(query);
          discarded += count;
          return next;
        },
      }),
    );
    log(`${dryRun ? 'would discard' : 'discarded'} ${counted(discarded, 'message')}`);
    if (others > 0) note(`${counted(others, 'message')} skipped: already replayed or discarded`);
  },
});
