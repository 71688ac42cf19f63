import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { isId } from '@gateway/core/events';
import { withDatabase } from '../../app/database.js';
import { wrongUse } from '../../app/flag-values.js';
import { GatewayCommand } from '../../app/gateway-command.js';

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
    const id = args.id.trim().toLowerCase();
    if (!isId(id))
      throw wrongUse(
        `${JSON.stringify(args.id)} is not an id`,
        'give the id of an event, a UUID such as 019ab3c4-5d6e-8f70-9123-456789abcdef; the management API shows it as uid',
      );
    const { config } = this.resolve(flags);
    const [{ explainEvent }, { explanationRecord, explanationText, unknownEvent }] = await Promise.all([
      import('@gateway/agent/inspect'),
      import('../../inspect/explanation.js'),
    ]);
    const explained = await withDatabase(config, (database) => explainEvent(database, id));
    if ('meanings' in explained) throw unknownEvent(id, explained.meanings);
    const { explanation } = explained;
    this.log(flags.json ? JSON.stringify(explanationRecord(explanation), null, 2) : explanationText(explanation));
  }
}
