import type { Database } from '@gateway/store/postgres';
import type { QuarantineEntry } from '@gateway/store/quarantine';
import type { Result } from '../../../quarantine/replay.js';
import { chosenArgs, chosenBy, chosenFlags, chosenPages } from '../../../quarantine/chosen.js';
import { GatewayCommand } from '../../../app/gateway-command.js';
import { replayedLine, verdictLine } from '../../../quarantine/verdict.js';
import { withDatabase } from '../../../app/database.js';

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
    const [{ replayAll, UNDER_WAY }, { stderrLog }] = await Promise.all([
      import('../../../quarantine/replay.js'),
      import('../../../quarantine/stderr-log.js'),
    ]);
    const counts = new Map<string, number>();
    const count = (kind: string) => counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const work = async (database: Database) => {
      const pages = await chosenPages(database, chosen);
      await replayAll(
        this.waiting(pages, (status) => count(status === 'replayed' ? 'done' : status)),
        {
          config,
          database,
          dryRun,
          log: stderrLog,
          onKvAway: () => this.logToStderr('warning: KV is away; agents find the events a few seconds later.'),
          onResult: (id, result) => {
            count(result.kind);
            this.log(`${id}  ${isVerdict(result, dryRun) ? verdictLine(result) : replayedLine(result)}`);
          },
        },
      );
    };
    await withDatabase(config, work, { poolSize: UNDER_WAY });
    this.logToStderr(`${dryRun ? 'nothing was changed: ' : ''}${summaryOf(counts)}`);
    if (UNDONE.some((kind) => counts.has(kind))) this.exit(1);
  }

  /** Those that are quarantined; of the others it is told that there is nothing to do. */
  private async *waiting(pages: AsyncIterable<QuarantineEntry[]>, onOther: (status: QuarantineEntry['status']) => void) {
    for await (const page of pages) {
      for (const { id, status } of page) {
        if (status === 'quarantined') continue;
        onOther(status);
        this.log(`${id}  ${status === 'replayed' ? 'was replayed already' : 'is discarded; nothing was done'}`);
      }
      yield page.filter(({ status }) => status === 'quarantined');
    }
  }
}

function isVerdict(result: Result, dryRun: boolean): result is Extract<Result, { kind: 'accepted' | 'dropped' | 'refused' }> {
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
