import type { QuarantineEntry } from '@gateway/store/quarantine';
import { GatewayCommand, withShards } from '../../../app/gateway-command.js';
import { resultLine } from '../../../quarantine/message-text.js';
import type { ReplayResult } from '../../../quarantine/replay.js';
import { chosenArgs, chosenBy, chosenFlags, chosenPages } from '../../../quarantine/selection.js';

/** Results that require action. The command fails if any message has one of them. */
const UNDONE: readonly (ReplayResult['kind'] | 'discarded')[] = ['refused', 'changed', 'discarded'];

export default class UtilsQuarantineReplay extends GatewayCommand {
  static override description =
    'Runs the current function of the source, validates the result, and creates events with the coordinates and time of the original ' +
    'message, so that a second replay creates no duplicates. Agents route and deliver them. Exits with 1 if a message is still ' +
    'rejected, is discarded, or changed meanwhile.';
  static override examples = [
    '<%= config.bin %> utils quarantine replay 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils quarantine replay --all --code transform_threw --time 2h --dry-run',
    '<%= config.bin %> utils quarantine replay --all --source-id 019ab3c4-0000-7000-8000-000000000000',
  ];
  static override flags = chosenFlags;
  static override args = chosenArgs;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineReplay);
    const chosen = chosenBy(flags, args.id);
    const dryRun = flags['dry-run'];
    const { config } = this.resolve(flags);
    const { CONCURRENT_MESSAGES, replayAll } = await import('../../../quarantine/replay.js');
    const counts = new Map<string, number>();
    const count = (kind: string) => counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const onKvAway = () =>
      this.logToStderr('warning: KV is unavailable; agents find the events a few seconds later.');
    const onResult = (id: string, result: ReplayResult) => {
      count(result.kind);
      this.log(`${id}  ${resultLine(result, dryRun)}`);
    };
    const onSkipped = ({ id, status }: QuarantineEntry) => {
      count(status === 'replayed' ? 'done' : status);
      this.log(
        `${id}  ${status === 'replayed' ? 'was already replayed' : 'is discarded; nothing was changed'}`,
      );
    };
    await withShards(
      config,
      async (shards) => {
        const pages = await chosenPages(shards, chosen);
        const database = shards.control;
        await replayAll(pages, { config, database, dryRun, onKvAway, onSkipped, onResult });
      },
      { poolSize: CONCURRENT_MESSAGES },
    );
    const parts = Object.entries(WORDS).flatMap(([kind, words]) =>
      counts.has(kind) ? [`${counts.get(kind)} ${words}`] : [],
    );
    this.logToStderr(
      `${dryRun ? 'nothing was changed: ' : ''}${parts.join(', ') || 'no quarantined message matches'}`,
    );
    if (UNDONE.some((kind) => counts.has(kind))) this.exit(1);
  }
}

const WORDS: Readonly<Record<string, string>> = {
  replayed: 'replayed',
  duplicate: 'duplicates',
  done: 'replayed already',
  accepted: 'would be accepted',
  dropped: 'dropped by the function',
  refused: 'still refused',
  changed: 'changed meanwhile',
  discarded: 'discarded before',
};
