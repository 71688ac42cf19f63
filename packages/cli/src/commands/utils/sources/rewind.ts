import {
  command,
  findIn,
  idArgument,
  jsonFlag,
  listFlag,
  projectFlag,
  switchFlag,
  valueFlag,
  wrongUse,
} from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';
import { counted } from '../../../output/table.js';

export default command({
  description:
    'Moves where a source is read from, back or ahead. Agents stop reading it for a few seconds. Messages whose events are kept are duplicates and not ' +
    'delivered again: `gateway retry` and replays send these. Messages that were read before and are older than the retention are passed over; --redeliver delivers them a second time. ' +
    'Does not ask for confirmation; --dry-run shows how many messages of each partition are affected.',
  examples: [
    'gateway utils sources rewind 019ab3c4-5d6e-7f70-9123-456789abcdef --to 2026-11-21T09:00:00Z --dry-run',
    'gateway utils sources rewind 019ab3c4-5d6e-7f70-9123-456789abcdef --offset 0:1200 --offset 1:1187',
    'gateway utils sources rewind 019ab3c4-5d6e-7f70-9123-456789abcdef --to latest',
  ],
  flags: {
    ...jsonFlag,
    to: valueFlag(
      '<place>',
      'earliest, latest, or a time like 2026-11-21T09:00:00Z: the first message at or after it.',
    ),
    offset: listFlag(
      '<partition>:<offset>',
      'Instead of --to: the offset of the next message of a partition. Others stay.',
    ),
    redeliver: switchFlag(
      'Deliver messages a second time whose events have been deleted by retention.',
    ),
    'dry-run': switchFlag('Only show what would be read again or skipped.'),
    ...projectFlag,
  },
  args: idArgument('Id of the source.'),
  async run({ args: { id }, flags, api, log, note, table }) {
    const { to, offset: offsets = [], redeliver = false } = flags;
    const dry_run = flags['dry-run'] ?? false;
    if ((to === undefined) === (offsets.length === 0))
      throw wrongUse('give either --to or --offset', 'for example --to earliest --dry-run');
    const where = to === undefined ? { positions: positionsOf(offsets) } : { to };
    const { found, project, moved } = await api(async (all) => {
      const it = await findIn(all, flags, ({ sources }) => sources.get(id));
      return { ...it, moved: await it.api.sources.rewind(id, { ...where, redeliver, dry_run }) };
    });
    table(moved.partitions, [
      ['PARTITION', 'partition'],
      ['FROM', 'from'],
      ['TO', 'to'],
      ['READ AGAIN', 'again'],
      ['EXPIRED', 'expired'],
      ['SKIPPED', 'skipped'],
    ]);
    if (flags.json) return;
    const name = `the source ${escapeLine(found.name)} of the project ${escapeLine(project.name)}`;
    const { again, expired, skipped } = moved;
    log(
      `${dry_run ? 'would move' : 'moved'} ${name}: ${counted(again, 'message')} read again, ${counted(skipped, 'message')} skipped`,
    );
    if (again > expired)
      note(`${counted(again - expired, 'message')} with events: duplicates, not delivered again`);
    if (expired > 0)
      note(
        `${counted(expired, 'message')} read before and older than the retention: ${redeliver ? 'delivered a second time' : 'passed over; --redeliver delivers them a second time'}`,
      );
  },
});

function positionsOf(offsets: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    offsets.map((given) => {
      const cut = given.lastIndexOf(':');
      if (cut < 1 || cut === given.length - 1)
        throw wrongUse(
          `--offset ${JSON.stringify(given)} is not a partition and an offset`,
          'give them as 0:1200, or orders.eu/0:1200 for a source with a topic pattern',
        );
      return [given.slice(0, cut), given.slice(cut + 1)];
    }),
  );
}
