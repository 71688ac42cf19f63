import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { GatewayCommand } from '../../app/gateway-command.js';
import { withDatabase } from '../../app/database.js';

export default class UtilsExplain extends GatewayCommand {
  static override description =
    'Finds the event in any project and tells the rule that routed it, the state and the last attempt of each delivery, and of each subscription of the project whether ' +
    'it matches and why not. Of an event that is still pending it tells what it waits for. It reads a few rows and changes nothing.';
  static override examples = [
    '<%= config.bin %> utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --json | jq .deliveries',
  ];
  static override flags = { json: Flags.boolean({ summary: 'Print JSON in place of text.' }) };
  static override args = {
    id: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'Id of the event; the header webhook-id of a delivery names the delivery.',
    }),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsExplain);
    const id = args['id'].trim().toLowerCase();
    if (!isId(id)) {
      throw new GatewayError('wrong_use', {
        sentence: `${JSON.stringify(args['id'])} is not an id`,
        fix: 'give the id of an event, a UUID such as 019ab3c4-5d6e-8f70-9123-456789abcdef; the management API shows it as uid',
      });
    }
    const { config } = this.resolve(flags);
    const { explainEvent } = await import('@gateway/agent/inspect');
    const explained = await withDatabase(config, async (database) => {
      return explainEvent(database, id);
    });
    if ('meanings' in explained) throw (await import('../../explain/unknown-event.js')).unknownEvent(id, explained.meanings);
    if (flags['json'] === true) {
      const { explanationRecord } = await import('../../explain/record.js');
      this.log(JSON.stringify(explanationRecord(explained.explanation), null, 2));
    } else {
      const { presentExplanation } = await import('../../explain/present.js');
      this.log(presentExplanation(explained.explanation, { width: process.stdout.columns }));
    }
  }
}
