import {
  command,
  integerOf,
  jsonFlag,
  readFlag,
  showNewest,
  wordFlag,
} from '../../../app/gateway-command.js';
import { filterFlags, selectionOf } from '../../../messages/selection.js';

const SHOWN = 50;
const NAME_CHARS = 24;

export default command({
  description:
    'Lists the newest messages first, from all projects by default. A quarantined message could not become an event. Its content ' +
    'and the reason are stored, and it was acknowledged to its broker.',
  examples: [
    'gateway utils quarantine list',
    'gateway utils quarantine list --status quarantined --code not_json --time 2h',
    'gateway utils quarantine list --json --limit 1000',
  ],
  flags: {
    ...filterFlags,
    status: wordFlag('quarantined|replayed|discarded', 'Only messages with this status.', [
      'quarantined',
      'replayed',
      'discarded',
    ]),
    limit: readFlag('<integer>', `Maximum number of messages. [default: ${SHOWN}]`, (name, given) =>
      integerOf(name, given, { max: 10_000, otherwise: SHOWN }),
    ),
    ...jsonFlag,
  },
  async run({ flags, api, note, table }) {
    const selection = { ...selectionOf(flags), status: flags.status };
    await api((all) =>
      showNewest(
        all,
        flags,
        ({ quarantine }, perPage) => quarantine.list({ ...selection, perPage }),
        async (found, hasMore) => {
          const names = new Map<string, string>();
          for (const id of new Set(found.map((it) => it.project_id)))
            for await (const { uid, name } of all.project(id).sources.list({ perPage: 200 }))
              names.set(uid, name);
          if (found.length === 0 && !flags.json) return note('No quarantined message matches.');
          const messages = found.map((it) => ({
            ...it,
            source_name: names.get(it.source_id) ?? null,
          }));
          table(messages, [
            ['ID', 'id'],
            ['PROJECT', 'project_name', NAME_CHARS],
            ['SOURCE', ({ source_name: name, source_id: id }) => name ?? id, NAME_CHARS],
            ['TIME', ({ occurred_at: time }) => `${time.slice(0, 19)}Z`],
            ['CODE', 'code'],
            ['BYTES', ({ raw_bytes: bytes, edited_at: at }) => `${bytes}${at ? ' edited' : ''}`],
            ['STATUS', 'status'],
            ['REASON', 'reason', 120],
          ]);
          if (hasMore)
            note(
              'There are more messages: raise --limit, or filter by --time, --code or --source-id.',
            );
        },
      ),
    );
  },
});
