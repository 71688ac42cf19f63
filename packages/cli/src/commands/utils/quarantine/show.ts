import {
  command,
  idArgument,
  jsonFlag,
  projectFlag,
  switchFlag,
  wrongUse,
} from '../../../app/gateway-command.js';
import { contentOf, messageText } from '../../../messages/message-text.js';
import { findMessages } from '../../../messages/selection.js';

export default command({
  description:
    'Shows the origin of the message, why it was rejected, what the reason means, and the content to replay. Control characters are ' +
    'escaped; --raw writes the bytes unchanged.',
  examples: [
    'gateway utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef --raw > message.json',
  ],
  flags: {
    raw: switchFlag('Write only the content, as raw bytes.'),
    original: switchFlag('Show the original content of an edited message.'),
    ...projectFlag,
    ...jsonFlag,
  },
  args: idArgument('Id of the message.'),
  async run({ args, flags, api, show }) {
    const { raw: asBytes, json, original } = flags;
    if (asBytes && json) throw wrongUse('--raw and --json cannot be combined', 'omit one of them');
    const { message, sourceName, projectName } = await api(async (all) => {
      const [it] = await findMessages(all, [args.id], flags);
      const { found: message, project } = it!;
      const source = await it!.api.sources.get(message.source_id).catch(() => undefined);
      return { message, sourceName: source?.name ?? 'deleted', projectName: project.name };
    });
    const bytes = contentOf(message, original);
    if (asBytes) return void process.stdout.write(bytes);
    const { uid: id, ...record } = message;
    show({ id, ...record }, () => messageText(message, { bytes, projectName, sourceName }));
  },
});
