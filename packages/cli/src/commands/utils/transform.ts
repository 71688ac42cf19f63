import { unwatchFile, watchFile } from 'node:fs';
import { basename } from 'node:path';
import type { FlagValues } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import { isHeaderName, isHeaderValue } from '@gateway/core/events';
import {
  Args,
  findIn,
  Flags,
  GatewayCommand,
  idOf,
  readInput,
  valueFlag,
  wrongUse,
} from '../../app/gateway-command.js';
import { untilInterrupted } from '../../app/signals.js';

const WATCH_INTERVAL_MS = 200;

export default class UtilsTransform extends GatewayCommand {
  static override description =
    'Runs a transform function in the sandbox, with the limits of an agent, and shows the result: accepted, dropped, or ' +
    'quarantined, and why. With --project-id or --source-id, also shows where the events would go; without them, no database is ' +
    'needed. Changes nothing. Exits with 1 if the message would be quarantined.';
  static override examples = [
    'gateway utils transform transform.js --sample order.json',
    'gateway utils transform transform.js --sample order.json --watch',
    'kcat -C -t orders -c 1 -e | gateway utils transform transform.js --sample - --project-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway utils transform --source-id 019ab3c4-5d6e-7f70-9123-456789abcdef --sample order.json',
  ];
  static override flags = {
    sample: valueFlag(
      '<path>',
      'File with a message as received from the broker; - for standard input.',
    ),
    'source-id': valueFlag('<id>', 'Run the stored function of this source instead of a file.'),
    'project-id': valueFlag('<id>', 'Show where the events would go in this project.'),
    header: Flags.string({
      helpValue: '<name: value>',
      multiple: true,
      multipleNonGreedy: true,
      summary: 'Header of the message, for subscriptions that filter by headers. May be repeated.',
    }),
    watch: Flags.boolean({ summary: 'Run again whenever one of the files changes, until Ctrl-C.' }),
    json: Flags.boolean({ summary: 'Print JSON instead of text.' }),
  };
  static override args = {
    file: Args.string({
      ignoreStdin: true,
      description: 'File with the function; `function transform(payload) { … }`.',
    }),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsTransform);
    const { file } = args;
    const { sample } = flags;
    const sourceId = idOf('--source-id', flags['source-id']);
    idOf('--project-id', flags['project-id']);
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
    if (flags.watch && watched.length === 0)
      throw wrongUse('--watch needs a file', 'name a file with --sample, or omit --watch');
    const headers = headersOf(flags.header ?? []);
    const { previewText } = await import('../../inspect/preview.js');
    const fromStdin = sample === '-' ? await readInput('--sample', sample) : undefined;
    const once = async () => {
      const body = fromStdin ?? (await readInput('--sample', sample));
      const own = file && (await readInput('the function', file)).toString('utf8');
      const { text, ...ran } = await this.preview(flags, own, { body, headers });
      const name = file === undefined ? ran.name : basename(file);
      const record = { function: name, sample_bytes: body.byteLength, ...ran.result };
      this.log(flags.json ? JSON.stringify(record, null, 2) : previewText(record, text));
      return record.outcome;
    };
    if (flags.watch) await this.watch(once, watched);
    else if ((await once()) === 'quarantined') this.exit(1);
  }

  /** Without a project or source, runs in this process and without a database. */
  private async preview(
    flags: FlagValues,
    own: string | undefined,
    sample: { readonly body: Buffer; readonly headers: Readonly<Record<string, string>> },
  ) {
    const projectId = idOf('--project-id', flags['project-id'] as string | undefined);
    const sourceId = idOf('--source-id', flags['source-id'] as string | undefined);
    if (own !== undefined && projectId === undefined) {
      const { previewHere } = await import('../../inspect/preview.js');
      const result = await previewHere(own, sample, this.resolve(flags).config);
      return { name: '', text: own, result };
    }
    const { body, headers } = sample;
    const given = { headers, raw: body.toString('base64'), raw_encoding: 'base64' } as const;
    return this.api(flags, async (api) => {
      if (own !== undefined) {
        const { sources } = api.project(projectId!);
        return {
          name: '',
          text: own,
          result: await sources.testFunction({ ...given, function: own }),
        };
      }
      const { found, api: of } = await findIn(api, projectId, (it) => it.sources.get(sourceId!));
      const result = await of.sources.testFunction({ ...given, source_id: sourceId });
      return { name: `the function of ${found.name}`, text: found.body_function ?? '', result };
    });
  }

  /**
   * Runs immediately and after every file change, until Ctrl-C. Prints errors instead of throwing
   * them.
   */
  private async watch(once: () => Promise<unknown>, files: readonly string[]): Promise<void> {
    let running = Promise.resolve();
    const run = () => {
      running = running.then(async () => {
        await once().catch((error: Error) =>
          this.logToStderr(
            `error: ${error.message}${isGatewayError(error) ? `\nfix:   ${error.fix}` : ''}`,
          ),
        );
        this.logToStderr(
          `\n${new Date().toLocaleTimeString('en-GB')} waiting for a change of ${files.join(' or ')}; stop with Ctrl-C\n`,
        );
      });
    };
    for (const file of files) watchFile(file, { interval: WATCH_INTERVAL_MS }, run);
    run();
    await untilInterrupted(() => files.forEach((file) => unwatchFile(file)));
    await running;
  }
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
