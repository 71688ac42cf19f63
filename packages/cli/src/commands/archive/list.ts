import type { ArchivedDay } from '@gateway/store/retention/archive';
import { command, idFlag, jsonFlag, readFlag, timeOf } from '../../app/gateway-command.js';
import { withArchive } from '../../app/stores.js';

const dayFlag = (summary: string) =>
  readFlag('<day>', summary, (name, given) =>
    given ? new Date(timeOf(name, given).firstMs).toISOString().slice(0, 10) : undefined,
  );

export default command({
  description:
    'One line per project and UTC day, and per shard of the project. Reads the manifests, and no database.',
  examples: [
    'gateway archive list',
    'gateway archive list --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --from 2026-01-01 --to 2026-01-31 --json',
  ],
  flags: {
    'project-id': idFlag('Only days of this project.'),
    from: dayFlag('First UTC day to list, as in 2026-01-31.'),
    to: dayFlag('Last UTC day to list.'),
    ...jsonFlag,
  },
  async run({ flags, config, note, table }) {
    const { 'project-id': projectId, from, to, json } = flags;
    const days: ArchivedDay[] = [];
    await withArchive(config(), async (archive) => {
      for await (const manifest of archive.list({ projectId, from, to })) days.push(manifest);
    });
    if (days.length === 0 && !json) return note('The archive has no such day.');
    const isSharded = days.some(({ shard }) => shard !== undefined);
    table(days, [
      ['PROJECT', 'project_id'],
      ['DAY', 'day'],
      ['EVENTS', 'events'],
      ['BYTES', 'bytes'],
      ['ARCHIVED', 'archived_at'],
      ...(isSharded ? [['SHARD', ({ shard = 'default' }: ArchivedDay) => shard] as const] : []),
    ]);
  },
});
