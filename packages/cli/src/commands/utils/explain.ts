import { isId } from '@gateway/core/events';
import { Flags, GatewayCommand, argument, wrongUse } from '../../app/gateway-command.js';

export default class UtilsExplain extends GatewayCommand {
  static override description =
    'Finds the event in any project. Shows the rule that routed it, the state and last attempt of each delivery, and for each ' +
    'subscription whether it matches and why not. For a pending event, shows what it waits for. Reads a few rows and changes ' +
    'nothing.';
  static override examples = [
    '<%= config.bin %> utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --json | jq .deliveries',
  ];
  static override flags = { json: Flags.boolean({ summary: 'Print JSON instead of text.' }) };
  static override args = {
    id: argument('Id of the event; the header webhook-id of a delivery names the delivery.'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsExplain);
    const id = args.id.trim().toLowerCase();
    if (!isId(id))
      throw wrongUse(
        `${JSON.stringify(args.id)} is not an id`,
        'give the id of an event, a UUID such as 019ab3c4-5d6e-8f70-9123-456789abcdef; the management API shows it as uid',
      );
    const [{ explainEvent, explanationRecord }, { explanationText, unknownEvent }] = await Promise.all([
      import('@gateway/store/explain'),
      import('../../inspect/explanation.js'),
    ]);
    const explained = await this.withDatabase(flags, ({ pool }) => explainEvent(pool, id));
    if ('meanings' in explained) throw unknownEvent(id, explained.meanings);
    const { explanation } = explained;
    this.log(flags.json ? JSON.stringify(explanationRecord(explanation), null, 2) : explanationText(explanation));
  }
}
