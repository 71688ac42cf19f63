import {
  GatewayCommand,
  integerOf,
  jsonFlag,
  projectIdOf,
  showNewest,
  valueFlag,
} from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';
import { filterFlags, selectionOf } from '../../../quarantine/selection.js';

const SHOWN = 50;
const NAME_CHARS = 24;
const REASON_CHARS = 120;

export default class UtilsQuarantineList extends GatewayCommand {
  static override description =
    'Lists the newest messages first, from all projects by default. A quarantined message could not become an event. Its content ' +
    'and the reason are stored, and it was acknowledged to its broker.';
  static override examples = [
    'gateway utils quarantine list',
    'gateway utils quarantine list --status quarantined --code not_json --time 2h',
    'gateway utils quarantine list --json --limit 1000',
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
    const projectId = projectIdOf(flags);
    await this.api(flags, (api) =>
      showNewest(
        api,
        { projectId, limit },
        ({ quarantine }, perPage) => quarantine.list({ ...selection, perPage }),
        async (found, hasMore) => {
          const names = new Map<string, string>();
          for (const id of new Set(found.map((it) => it.project_id)))
            for await (const { uid, name } of api.project(id).sources.list({ perPage: 200 }))
              names.set(uid, name);
          if (found.length === 0 && !flags.json)
            return this.logToStderr('No quarantined message matches.');
          const messages = found.map((it) => ({
            ...it,
            source_name: names.get(it.source_id) ?? null,
          }));
          this.logTable(messages, flags, [
            ['ID', ({ id }) => id],
            ['PROJECT', ({ project_name: name }) => escapeLine(name, NAME_CHARS)],
            [
              'SOURCE',
              ({ source_name: name, source_id: id }) => escapeLine(name ?? id, NAME_CHARS),
            ],
            ['TIME', ({ occurred_at: time }) => `${time.slice(0, 19)}Z`],
            ['CODE', ({ code }) => escapeLine(code)],
            ['BYTES', ({ raw_bytes: bytes, edited_at: at }) => `${bytes}${at ? ' edited' : ''}`],
            ['STATUS', ({ status }) => status],
            ['REASON', ({ reason }) => escapeLine(reason, REASON_CHARS)],
          ]);
          if (hasMore)
            this.logToStderr(
              'There are more messages: raise --limit, or filter by --time, --code or --source-id.',
            );
        },
      ),
    );
  }
}
