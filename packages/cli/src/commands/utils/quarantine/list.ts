import type { QuarantineEntry } from '@gateway/store/quarantine';
import type { Shards } from '@gateway/store/shards';
import {
  GatewayCommand,
  integerOf,
  jsonFlag,
  onEachShard,
  valueFlag,
  withShards,
} from '../../../app/gateway-command.js';
import { shardsOf } from '../../../app/stores.js';
import { escapeLine } from '../../../output/escape-terminal.js';
import { entryRecord } from '../../../quarantine/message-text.js';
import { filterFlags, selectionOf } from '../../../quarantine/selection.js';

const SHOWN = 50;
const NAME_CHARS = 24;
const REASON_CHARS = 120;

export default class UtilsQuarantineList extends GatewayCommand {
  static override description =
    'Lists the newest messages first, from all projects by default. A quarantined message could not become an event. Its content ' +
    'and the reason are stored, and it was acknowledged to its broker.';
  static override examples = [
    '<%= config.bin %> utils quarantine list',
    '<%= config.bin %> utils quarantine list --status quarantined --code not_json --time 2h',
    '<%= config.bin %> utils quarantine list --json --limit 1000',
  ];
  static override flags = {
    ...filterFlags,
    status: valueFlag('quarantined|replayed|discarded', 'Only messages with this status.'),
    limit: valueFlag('<integer>', `Maximum number of messages. [default: ${SHOWN}]`),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsQuarantineList);
    const selection = selectionOf(flags);
    const limit = integerOf('--limit', flags.limit, { max: 10_000, otherwise: SHOWN });
    const { listQuarantine } = await import('@gateway/store/quarantine');
    const part = { order: 'desc', limit: limit + 1 } as const;
    const found: QuarantineEntry[] = [];
    const list = async (shards: Shards) =>
      onEachShard(await shardsOf(shards, selection.projectId), async ({ planes }) => {
        found.push(...(await listQuarantine(planes, selection, part)));
      });
    let isDone = false;
    try {
      await withShards(this.resolve(flags).config, list);
      isDone = true;
    } finally {
      // Lists the shards that answered, also when another one failed.
      if (isDone || found.length > 0)
        this.show(
          found.sort((a, b) => (a.id < b.id ? 1 : -1)),
          limit,
          flags,
        );
    }
  }

  private show(
    found: readonly QuarantineEntry[],
    limit: number,
    flags: { readonly json: boolean },
  ): void {
    if (found.length === 0 && !flags.json)
      return this.logToStderr('No quarantined message matches.');
    this.logTable(found.slice(0, limit).map(entryRecord), flags, [
      ['ID', ({ id }) => id],
      ['PROJECT', ({ project_name: name }) => escapeLine(name, NAME_CHARS)],
      ['SOURCE', ({ source_name: name, source_id: id }) => escapeLine(name ?? id, NAME_CHARS)],
      ['TIME', ({ occurred_at: time }) => `${time.toISOString().slice(0, 19)}Z`],
      ['CODE', ({ code }) => escapeLine(code)],
      [
        'BYTES',
        ({ raw_bytes: bytes, edited_at: editedAt }) => `${bytes}${editedAt ? ' edited' : ''}`,
      ],
      ['STATUS', ({ status }) => status],
      ['REASON', ({ reason }) => escapeLine(reason, REASON_CHARS)],
    ]);
    if (found.length > limit)
      this.logToStderr(
        'There are more messages: raise --limit, or filter by --time, --code or --source-id.',
      );
  }
}
