import type { QuarantineEntry } from '@gateway/store/quarantine';
import { withDatabase } from '../../../app/database.js';
import { GatewayCommand } from '../../../app/gateway-command.js';
import { dryRunLine, replayedLine } from '../../../quarantine/message-text.js';
import type { Result } from '../../../quarantine/replay.js';
import { chosenArgs, chosenBy, chosenFlags, chosenPages } from '../../../quarantine/selection.js';

/** Results that leave work for a person: the command fails then. */
const UNDONE: readonly (Result['kind'] | 'discarded')[] = ['refused', 'changed', 'discarded'];

export default class UtilsQuarantineReplay extends GatewayCommand {
  static override description =
    'Runs the function of the source as it is now, validates, and makes the events, with the coordinates and the time that the message came with: replaying twice makes ' +
    'no second event. Agents route and deliver them. Exits 1 when a message is still refused, discarded, or changed by somebody else.';
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
    const { CONCURRENT_MESSAGES, replayAll, stderrLog } = await import('../../../quarantine/replay.js');
    const counts = new Map<string, number>();
    const count = (kind: string) => counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const onKvAway = () => this.logToStderr('warning: KV is away; agents find the events a few seconds later.');
    const onResult = (id: string, result: Result) => {
      count(result.kind);
      this.log(`${id}  ${isDryRun(result, dryRun) ? dryRunLine(result) : replayedLine(result)}`);
    };
    const onSkipped = ({ id, status }: QuarantineEntry) => {
      count(status === 'replayed' ? 'done' : status);
      this.log(`${id}  ${status === 'replayed' ? 'was replayed already' : 'is discarded; nothing was done'}`);
    };
    await withDatabase(
      config,
      async (database) => {
        const pages = await chosenPages(database, chosen);
        await replayAll(pages, { config, database, dryRun, log: stderrLog, onKvAway, onSkipped, onResult });
      },
      { poolSize: CONCURRENT_MESSAGES },
    );
    this.logToStderr(`${dryRun ? 'nothing was changed: ' : ''}${summaryOf(counts)}`);
    if (UNDONE.some((kind) => counts.has(kind))) this.exit(1);
  }
}

function isDryRun(result: Result, dryRun: boolean): result is Extract<Result, { kind: 'accepted' | 'dropped' | 'refused' }> {
  return dryRun || result.kind === 'accepted';
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

function summaryOf(counts: ReadonlyMap<string, number>): string {
  const parts = Object.entries(WORDS).flatMap(([kind, words]) => (counts.has(kind) ? [`${counts.get(kind)} ${words}`] : []));
  return parts.length === 0 ? 'no message is quarantined that fits' : parts.join(', ');
}
