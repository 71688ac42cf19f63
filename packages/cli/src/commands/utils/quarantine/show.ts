import {
  Flags,
  GatewayCommand,
  idOf,
  jsonFlag,
  projectFlag,
  projectIdOf,
  wrongUse,
} from '../../../app/gateway-command.js';
import { contentOf, messageText } from '../../../quarantine/message-text.js';
import { findMessages, messageArg } from '../../../quarantine/selection.js';

export default class UtilsQuarantineShow extends GatewayCommand {
  static override description =
    'Shows the origin of the message, why it was rejected, what the reason means, and the content to replay. Control characters are ' +
    'escaped; --raw writes the bytes unchanged.';
  static override examples = [
    'gateway utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef --raw > message.json',
  ];
  static override flags = {
    raw: Flags.boolean({ summary: 'Write only the content, as raw bytes.' }),
    original: Flags.boolean({ summary: 'Show the original content of an edited message.' }),
    ...projectFlag,
    ...jsonFlag,
  };
  static override args = messageArg;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineShow);
    const { raw: asBytes, json, original } = flags;
    if (asBytes && json) throw wrongUse('--raw and --json cannot be combined', 'omit one of them');
    const wanted = { ids: [idOf('the argument', args.id)], projectId: projectIdOf(flags) };
    const { message, sourceName, projectName } = await this.api(flags, async (api) => {
      const [it] = await findMessages(api, wanted);
      const { found: message, project } = it!;
      const source = await it!.api.sources.get(message.source_id).catch(() => undefined);
      return { message, sourceName: source?.name ?? 'deleted', projectName: project.name };
    });
    const bytes = contentOf(message, original);
    if (asBytes) process.stdout.write(bytes);
    else if (json) {
      const { uid: id, ...record } = message;
      this.log(JSON.stringify({ id, ...record }, null, 2));
    } else this.log(messageText(message, { bytes, projectName, sourceName }));
  }
}
