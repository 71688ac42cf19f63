import { writeFile } from 'node:fs/promises';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { answerTable } from '../output/table.js';
import type { ImportedEventTypes } from '@gateway/client';
import { fileReason } from '@gateway/core/errors';
import { GatewayCommand, valueFlag } from '../app/gateway-command.js';
import { idOf, wrongUse } from '../app/flag-values.js';

export default class Openapi extends GatewayCommand {
  static override description =
    'Reads the webhooks (3.1), x-webhooks (3.0) and callbacks of OpenAPI documents, in YAML or JSON, and prints the JSON Schema ' +
    'of each event type. With --project-id, the schemas are imported as event types of the project; a second import changes ' +
    'nothing. Without it, no database is needed. References to other files are followed; references to other hosts are rejected.';
  static override examples = [
    'gateway openapi openapi.yaml',
    'gateway openapi orders.yaml refunds.json --output event-types.json',
    'gateway openapi openapi.yaml --project-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
  ];
  static override strict = false;
  static override flags = {
    output: valueFlag('<path>', 'Write the JSON to this file instead of standard output.'),
    'project-id': valueFlag(
      '<id>',
      'Import the event types into this project, and list the changes.',
    ),
    json: Flags.boolean({ summary: 'With --project-id: print JSON instead of a table.' }),
  };
  static override args = {
    file: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'Path of an OpenAPI document. May be repeated.',
    }),
  };

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(Openapi);
    const { output } = flags;
    const projectId = idOf('--project-id', flags['project-id']);
    const [{ extractEventTypes }, { readDocument }] = await Promise.all([
      import('@gateway/core/openapi'),
      import('../app/parse-document.js'),
    ]);
    const files = argv as string[];
    const documents = [];
    for (const file of files) documents.push(await readDocument(file));
    const types = await extractEventTypes(documents);
    if (types.size === 0)
      this.logToStderr(`There are no webhooks, x-webhooks or callbacks in ${files.join(', ')}.`);
    const json = JSON.stringify(Object.fromEntries(types), null, 2);
    if (output !== undefined) await this.write(output, json, types.size);
    else if (projectId === undefined) this.log(json);
    if (projectId === undefined) return;
    const given = { documents: documents.map(({ root }) => root) };
    const result = await this.api(flags, (api) => api.project(projectId).eventTypes.import(given));
    this.log(importedText(result, flags.json));
  }

  private async write(path: string, json: string, count: number): Promise<void> {
    try {
      await writeFile(path, `${json}\n`);
    } catch (error) {
      throw wrongUse(
        `${path} cannot be written: ${fileReason(error)}`,
        'name a file in an existing folder',
      );
    }
    this.logToStderr(`Wrote ${count} event ${count === 1 ? 'type' : 'types'} to ${path}.`);
  }
}

function importedText({ content, ...counts }: ImportedEventTypes, json: boolean): string {
  const table = answerTable(
    content,
    [
      ['RESULT', ({ result }) => result],
      ['EVENT TYPE', ({ name }) => name],
    ],
    { json },
  );
  if (json) return table;
  const sum = `${counts.created} created, ${counts.updated} updated, ${counts.unchanged} unchanged`;
  return content.length === 0 ? sum : `${table}\n${sum}`;
}
