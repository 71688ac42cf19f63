import type { ArchivedDay } from '@gateway/store/retention/archive';
import { GatewayCommand, idOf, jsonFlag, timeOf, valueFlag } from '../../app/gateway-command.js';
import { withArchive } from '../../app/stores.js';

/** Shown if there is more than the default shard. */
const SHARD = ['SHARD', ({ shard = 'default' }: ArchivedDay) => shard] as const;

export default class ArchiveList extends GatewayCommand {
  static override description =
    'One line per project and UTC day, and per shard of the project. Reads the manifests, and no database.';
  static override examples = [
    'gateway archive list',
    'gateway archive list --project-id 0195c3a0-5b1e-7cc0-8f4e-2f6f0a9d1b3c --from 2026-01-01 --to 2026-01-31 --json',
  ];
  static override flags = {
    'project-id': valueFlag('<id>', 'Only days of this project.'),
    from: valueFlag('<day>', 'First UTC day to list, as in 2026-01-31.'),
    to: valueFlag('<day>', 'Last UTC day to list.'),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(ArchiveList);
    const selection = {
      projectId: idOf('--project-id', flags['project-id']),
      from: dayOf('--from', flags.from),
      to: dayOf('--to', flags.to),
    };
    const { config } = this.resolve(flags);
    const days = await withArchive(config, async (archive) => {
      const found: ArchivedDay[] = [];
      for await (const manifest of archive.list(selection)) found.push(manifest);
      return found;
    });
    if (flags.json) {
      this.log(JSON.stringify(days, null, 2));
      return;
    }
    if (days.length === 0) {
      this.logToStderr('The archive has no such day.');
      return;
    }
    this.logTable(days, flags, [
      ['PROJECT', ({ project_id: id }) => id],
      ['DAY', ({ day }) => day],
      ['EVENTS', ({ events }) => String(events)],
      ['BYTES', ({ bytes }) => String(bytes)],
      ['ARCHIVED', ({ archived_at: at }) => at],
      ...(days.some(({ shard }) => shard !== undefined) ? [SHARD] : []),
    ]);
  }
}

function dayOf(name: string, given: string | undefined): string | undefined {
  return given && new Date(timeOf(name, given).firstMs).toISOString().slice(0, 10);
}
