import {
  Flags,
  GatewayCommand,
  idOf,
  jsonFlag,
  withShards,
  wrongUse,
} from '../../../app/gateway-command.js';
import { entryRecord, messageText } from '../../../quarantine/message-text.js';
import { findEntry, messageArg } from '../../../quarantine/selection.js';

export default class UtilsQuarantineShow extends GatewayCommand {
  static override description =
    'Shows the origin of the message, why it was rejected, what the reason means, and the content to replay. Control characters are ' +
    'escaped; --raw writes the bytes unchanged.';
  static override examples = [
    '<%= config.bin %> utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef --raw > message.json',
  ];
  static override flags = {
    raw: Flags.boolean({ summary: 'Write only the content, as raw bytes.' }),
    original: Flags.boolean({ summary: 'Show the original content of an edited message.' }),
    ...jsonFlag,
  };
  static override args = messageArg;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineShow);
    const { raw: asBytes, json, original } = flags;
    if (asBytes && json) throw wrongUse('--raw and --json cannot be combined', 'omit one of them');
    const id = idOf('the argument', args.id);
    const { findQuarantinedMessage, quarantinedBytes } = await import('@gateway/store/quarantine');
    const { entry, whole } = await withShards(this.resolve(flags).config, async (shards) => {
      const { planes, entry } = await findEntry(shards.all, id);
      const whole = await findQuarantinedMessage(planes.data, entry.project_id, id);
      return { entry, whole: original ? { raw: whole!.raw, edited_raw: null } : whole! };
    });
    if (asBytes) process.stdout.write(whole.edited_raw ?? whole.raw);
    else if (json)
      this.log(JSON.stringify({ ...entryRecord(entry), ...quarantinedBytes(whole) }, null, 2));
    else this.log(messageText(entry, whole));
  }
}
