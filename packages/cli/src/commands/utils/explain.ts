import {
  command,
  findIn,
  idArgument,
  jsonOrText,
  projectFlag,
  switchFlag,
  wrongUse,
} from '../../app/gateway-command.js';

export default command({
  description:
    'Finds the event in any project. Shows the rule that routed it, the state and last attempt of each delivery, and for each ' +
    'subscription whether it matches and why not. For a pending event, shows what it waits for. Reads a few rows and changes ' +
    'nothing.',
  examples: [
    'gateway utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --json | jq .deliveries',
    'gateway utils explain 019ab3c4-5d6e-8f70-9123-456789abcdef --message > message.json',
  ],
  flags: {
    ...jsonOrText,
    message: switchFlag('Write only the message that the event was created from, as raw bytes.'),
    ...projectFlag,
  },
  args: idArgument('Id of the event. The header webhook-id has the id of the delivery instead.'),
  async run({ args: { id }, flags, api, show }) {
    if (flags.json && flags.message)
      throw wrongUse('--message and --json cannot be combined', 'omit one of them');
    const { explanation, message } = await api(async (all) => {
      const it = await findIn(all, flags, ({ events }) => events.explain(id));
      const message = flags.message ? await it.api.events.getMessage(id) : undefined;
      return { explanation: it.found, message };
    });
    const { explanationText, messageBytes } = await import('../../messages/explanation.js');
    if (message) process.stdout.write(messageBytes(message));
    else show(explanation, () => explanationText(explanation));
  },
});
