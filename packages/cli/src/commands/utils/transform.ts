import { unwatchFile, watchFile } from 'node:fs';
import { basename } from 'node:path';
import { isGatewayError } from '@gateway/core/errors';
import { isHeaderName, isHeaderValue } from '@gateway/core/events';
import {
  command,
  findIn,
  idFlag,
  jsonOrText,
  listFlag,
  optionalArgument,
  readInput,
  switchFlag,
  valueFlag,
  wrongUse,
} from '../../app/gateway-command.js';
import { untilInterrupted } from '../../app/signals.js';

const WATCH_INTERVAL_MS = 200;

export default command({
  description:
    'Runs a transform function in the sandbox, with the limits of an agent, and shows the result: accepted, dropped, or ' +
    'quarantined, and why. With --project-id or --source-id, also shows where the events would go; without them, no database is ' +
    'needed. Changes nothing. Exits with 1 if the message would be quarantined.',
  examples: [
    'gateway utils transform transform.js --sample order.json',
    'gateway utils transform transform.js --sample order.json --watch',
    'kcat -C -t orders -c 1 -e | gateway utils transform transform.js --sample - --project-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway utils transform --source-id 019ab3c4-5d6e-7f70-9123-456789abcdef --sample order.json',
  ],
  flags: {
    sample: valueFlag(
      '<path>',
      'File with a message as received from the broker; - for standard input.',
    ),
    'source-id': idFlag('Run the stored function of this source instead of a file.'),
    'project-id': idFlag('Show where the events would go in this project.'),
    header: listFlag(
      '<name: value>',
      'Header of the message, for subscriptions that filter by headers. May be repeated.',
    ),
    'message-key': valueFlag('<text>', 'Key of the message.'),
    watch: switchFlag('Run again whenever one of the files changes, until Ctrl-C.'),
    ...jsonOrText,
  },
  args: {
    file: optionalArgument('File with the function; `function transform(payload) { … }`.'),
  },
  async run({ args: { file }, flags, api, config, exit, note, show }) {
    const {
      sample,
      'source-id': sourceId,
      'project-id': projectId,
      'message-key': key,
      watch,
    } = flags;
    if ((file === undefined) === (sourceId === undefined))
      throw wrongUse(
        file === undefined
          ? 'there is no function to run'
          : 'a file and --source-id were both given',
        'name a file with the function, or use --source-id to run the stored function of a source',
      );
    if (sample === undefined)
      throw wrongUse(
        'there is no message to run the function on',
        'set it with --sample <file>, or --sample - for standard input; `gateway utils quarantine show <id> --raw` writes a quarantined one',
      );
    const watched = [file, sample].filter((it) => it !== undefined && it !== '-') as string[];
    if (watch && watched.length === 0)
      throw wrongUse('--watch needs a file', 'name a file with --sample, or omit --watch');
    const headers = headersOf(flags.header ?? []);
    const { previewHere, previewText } = await import('../../messages/preview.js');
    const fromStdin = sample === '-' ? await readInput('--sample', sample) : undefined;

    /** Without a project or source, runs in this process and without a database. */
    const preview = async (body: Buffer) => {
      const given = {
        headers,
        ...(key !== undefined && { key }),
        raw: body.toString('base64'),
        raw_encoding: 'base64',
      } as const;
      if (file === undefined)
        return api(async (all) => {
          const { found, api: of } = await findIn(all, flags, (it) => it.sources.get(sourceId!));
          const result = await of.sources.testFunction({ ...given, source_id: sourceId });
          const name = `the function of ${found.name}`;
          return { name, text: found.body_function ?? '', result };
        });
      const text = (await readInput('the function', file)).toString('utf8');
      const result = await (projectId === undefined
        ? previewHere(text, { body, headers, message: { key: Buffer.from(key ?? '') } }, config())
        : api((all) => all.project(projectId).sources.testFunction({ ...given, function: text })));
      return { name: basename(file), text, result };
    };
    const once = async () => {
      const body = fromStdin ?? (await readInput('--sample', sample));
      const { name, text, result } = await preview(body);
      const record = { function: name, sample_bytes: body.byteLength, ...result };
      show(record, () => previewText(record, text));
      return record.outcome;
    };
    if (watch) await repeat(once, watched, note);
    else if ((await once()) === 'quarantined') exit(1);
  },
});

/**
 * Runs immediately and after every file change, until Ctrl-C. Prints errors instead of throwing
 * them.
 */
async function repeat(
  once: () => Promise<unknown>,
  files: readonly string[],
  note: (text: string) => void,
): Promise<void> {
  let running = Promise.resolve();
  const run = () => {
    running = running.then(async () => {
      await once().catch((error: Error) =>
        note(`error: ${error.message}${isGatewayError(error) ? `\nfix:   ${error.fix}` : ''}`),
      );
      note(
        `\n${new Date().toLocaleTimeString('en-GB')} waiting for a change of ${files.join(' or ')}; stop with Ctrl-C\n`,
      );
    });
  };
  for (const file of files) watchFile(file, { interval: WATCH_INTERVAL_MS }, run);
  run();
  await untilInterrupted(() => files.forEach((file) => unwatchFile(file)));
  await running;
}

function headersOf(given: readonly string[]): Record<string, string> {
  const pairs = given.map((line) => {
    const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/s.exec(line) ?? [];
    if (isHeaderName(name) && isHeaderValue(value)) return [name, value];
    throw wrongUse(
      `--header must be a name and a value, not ${JSON.stringify(line)}`,
      "write it as --header 'x-shop: 7'",
    );
  });
  return Object.fromEntries(pairs) as Record<string, string>;
}
