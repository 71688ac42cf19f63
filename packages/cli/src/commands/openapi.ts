import { writeFile } from 'node:fs/promises';
import { fileReason } from '@gateway/core/errors';
import {
  argument,
  command,
  idFlag,
  switchFlag,
  valueFlag,
  wrongUse,
} from '../app/gateway-command.js';
import { counted } from '../output/table.js';

export default command({
  description:
    'Reads the webhooks (3.1), x-webhooks (3.0) and callbacks of OpenAPI documents, in YAML or JSON, and prints the JSON Schema ' +
    'of each event type. With --project-id, the schemas are imported as event types of the project; a second import changes ' +
    'nothing. Without it, no database is needed. References to other files are followed; references to other hosts are rejected.',
  examples: [
    'gateway openapi openapi.yaml',
    'gateway openapi orders.yaml refunds.json --output event-types.json',
    'gateway openapi openapi.yaml --project-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
  ],
  strict: false,
  flags: {
    output: valueFlag('<path>', 'Write the JSON to this file instead of standard output.'),
    'project-id': idFlag('Import the event types into this project, and list the changes.'),
    json: switchFlag('With --project-id: print JSON instead of a table.'),
  },
  args: { file: argument('Path of an OpenAPI document. May be repeated.') },
  async run({ argv: files, flags, api, log, note, table }) {
    const { output, 'project-id': projectId } = flags;
    const [{ extractEventTypes }, { readDocument }] = await Promise.all([
      import('@gateway/core/openapi'),
      import('../app/parse-document.js'),
    ]);
    const documents = [];
    for (const file of files) documents.push(await readDocument(file));
    const types = await extractEventTypes(documents);
    if (types.size === 0)
      note(`There are no webhooks, x-webhooks or callbacks in ${files.join(', ')}.`);
    const text = JSON.stringify(Object.fromEntries(types), null, 2);
    if (output !== undefined) {
      await write(output, text);
      note(`Wrote ${counted(types.size, 'event type')} to ${output}.`);
    } else if (projectId === undefined) log(text);
    if (projectId === undefined) return;
    const given = { documents: documents.map(({ root }) => root) };
    const { content, ...counts } = await api((it) =>
      it.project(projectId).eventTypes.import(given),
    );
    if (flags.json || content.length > 0)
      table(content, [
        ['RESULT', 'result'],
        ['EVENT TYPE', 'name'],
      ]);
    if (flags.json) return;
    log(`${counts.created} created, ${counts.updated} updated, ${counts.unchanged} unchanged`);
  },
});

async function write(path: string, json: string): Promise<void> {
  try {
    await writeFile(path, `${json}\n`);
  } catch (error) {
    throw wrongUse(
      `${path} cannot be written: ${fileReason(error)}`,
      'name a file in an existing folder',
    );
  }
}
