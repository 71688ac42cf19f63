import type { ReplayedMessages } from '@gateway/client';
import { command } from '../../../app/gateway-command.js';
import { resultLine } from '../../../messages/message-text.js';
import { chosenArgs, chosenBy, chosenFlags, workOn } from '../../../messages/selection.js';

/** The command fails if any message has one of these results, which require action. */
const UNDONE = ['refused', 'changed', 'discarded'];

const COUNTED = [
  'replayed',
  'duplicates',
  'dropped',
  'refused',
  'changed',
] as const satisfies readonly (keyof ReplayedMessages)[];

const WORDS: Readonly<Record<string, string>> = {
  replayed: 'replayed',
  duplicate: 'duplicates',
  duplicates: 'duplicates',
  done: 'replayed already',
  accepted: 'would be accepted',
  dropped: 'dropped by the function',
  refused: 'still refused',
  changed: 'changed meanwhile',
  discarded: 'discarded before',
};

export default command({
  description:
    'Runs the current function of the source, validates the result, and creates events with the coordinates and time of the original ' +
    'message, so that a second replay creates no duplicates. Agents route and deliver them. Exits with 1 if a message is still ' +
    'rejected, is discarded, or changed meanwhile.',
  examples: [
    'gateway utils quarantine replay 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine replay --all --code transform_threw --time 2h --dry-run',
    'gateway utils quarantine replay --all --source-id 019ab3c4-0000-7000-8000-000000000000',
  ],
  flags: chosenFlags,
  args: chosenArgs,
  async run({ args, flags, api, exit, log, note }) {
    const chosen = chosenBy(flags, args.id);
    const dryRun = flags['dry-run'];
    const counts = new Map<string, number>();
    const count = (kind: string, n = 1) => counts.set(kind, (counts.get(kind) ?? 0) + n);
    await api((all) =>
      workOn(all, chosen, flags, {
        async one({ quarantine }, { uid: id, status }) {
          if (status !== 'quarantined') {
            const isReplayed = status === 'replayed';
            count(isReplayed ? 'done' : status);
            log(
              `${id}  ${isReplayed ? 'was already replayed' : 'is discarded; nothing was changed'}`,
            );
            return;
          }
          const result = await quarantine.replay(id, { dry_run: dryRun });
          count(result.outcome);
          log(`${id}  ${resultLine(result, dryRun)}`);
        },
        async batch({ quarantine }, query) {
          const { next, ...step } = await quarantine.batchReplay(query);
          for (const kind of COUNTED)
            count(dryRun && kind === 'replayed' ? 'accepted' : kind, step[kind]);
          return next;
        },
      }),
    );
    const parts = Object.entries(WORDS).flatMap(([kind, words]) =>
      counts.get(kind) ? [`${counts.get(kind)!.toLocaleString('en-US')} ${words}`] : [],
    );
    note(
      `${dryRun ? 'nothing was changed: ' : ''}${parts.join(', ') || 'no quarantined message matches'}`,
    );
    if (UNDONE.some((kind) => counts.get(kind))) exit(1);
  },
});
