import type { ReplayedMessages } from '@gateway/client';
import { GatewayCommand, inEach, projectsOf } from '../../../app/gateway-command.js';
import { resultLine } from '../../../quarantine/message-text.js';
import {
  batchOf,
  chosenArgs,
  chosenBy,
  chosenFlags,
  findMessages,
} from '../../../quarantine/selection.js';

/** The command fails if any message has one of these results, which require action. */
const UNDONE = ['refused', 'changed', 'discarded'];

export default class UtilsQuarantineReplay extends GatewayCommand {
  static override description =
    'Runs the current function of the source, validates the result, and creates events with the coordinates and time of the original ' +
    'message, so that a second replay creates no duplicates. Agents route and deliver them. Exits with 1 if a message is still ' +
    'rejected, is discarded, or changed meanwhile.';
  static override examples = [
    'gateway utils quarantine replay 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine replay --all --code transform_threw --time 2h --dry-run',
    'gateway utils quarantine replay --all --source-id 019ab3c4-0000-7000-8000-000000000000',
  ];
  static override flags = chosenFlags;
  static override args = chosenArgs;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineReplay);
    const chosen = chosenBy(flags, args.id);
    const dryRun = flags['dry-run'];
    const counts = new Map<string, number>();
    const count = (kind: string, n = 1) => counts.set(kind, (counts.get(kind) ?? 0) + n);
    await this.api(flags, async (api) => {
      if ('ids' in chosen) {
        for (const { api: of, found } of await findMessages(api, chosen)) {
          const { uid: id, status } = found;
          if (status !== 'quarantined') {
            count(status === 'replayed' ? 'done' : status);
            this.log(
              `${id}  ${status === 'replayed' ? 'was already replayed' : 'is discarded; nothing was changed'}`,
            );
            continue;
          }
          const result = await of.quarantine.replay(id, { dry_run: dryRun });
          count(result.outcome);
          this.log(`${id}  ${resultLine(result, dryRun)}`);
        }
        return;
      }
      const query = { ...batchOf(chosen.selection), dry_run: dryRun };
      await inEach(api, await projectsOf(api, chosen.projectId), async ({ quarantine }) => {
        for (let after: string | null | undefined; after !== null;) {
          const { next, ...step } = await quarantine.batchReplay({ ...query, after });
          for (const kind of COUNTED)
            count(dryRun && kind === 'replayed' ? 'accepted' : kind, step[kind]);
          after = next;
        }
      });
    });
    const parts = Object.entries(WORDS).flatMap(([kind, words]) =>
      counts.get(kind) ? [`${counts.get(kind)!.toLocaleString('en-US')} ${words}`] : [],
    );
    this.logToStderr(
      `${dryRun ? 'nothing was changed: ' : ''}${parts.join(', ') || 'no quarantined message matches'}`,
    );
    if (UNDONE.some((kind) => counts.get(kind))) this.exit(1);
  }
}

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
