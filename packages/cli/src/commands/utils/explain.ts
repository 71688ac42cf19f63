import {
  argument,
  findIn,
  Flags,
  GatewayCommand,
  idOf,
  projectFlag,
  projectIdOf,
  wrongUse,
} from '../../app/gateway-command.js';

export default class UtilsExplain extends GatewayCommand {
  static override description =
    'Finds the event in any project. Shows the rule that routed it, the state and last attempt of each delivery, and for each ' +
    'subscription whether it matches and why not. For a pending event, shows what it waits for. Reads a few rows and changes ' +
    'nothing.';
  static override examples = [
    'gateway utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --json | jq .deliveries',
    'gateway utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --message > message.json',
  ];
  static override flags = {
    json: Flags.boolean({ summary: 'Print JSON instead of text.' }),
    message: Flags.boolean({
      summary: 'Write only the message that the event was created from, as raw bytes.',
    }),
    ...projectFlag,
  };
  static override args = {
    id: argument('Id of the event. The header webhook-id has the id of the delivery instead.'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsExplain);
    if (flags.json && flags.message)
      throw wrongUse('--message and --json cannot be combined', 'omit one of them');
    const id = idOf('the argument', args.id);
    const { explanation, message } = await this.api(flags, async (api) => {
      const it = await findIn(api, projectIdOf(flags), ({ events }) => events.explain(id));
      const message = flags.message ? await it.api.events.getMessage(id) : undefined;
      return { explanation: it.found, message };
    });
    const { explanationText, messageBytes } = await import('../../inspect/explanation.js');
    if (message) process.stdout.write(messageBytes(message));
    else this.log(flags.json ? JSON.stringify(explanation, null, 2) : explanationText(explanation));
  }
}
