import { GatewayError } from '@gateway/core/errors';
import {
  GatewayCommand,
  idOf,
  readInput,
  valueFlag,
  withShards,
} from '../../../app/gateway-command.js';
import { editInEditor } from '../../../quarantine/editor.js';
import { resultLine } from '../../../quarantine/message-text.js';
import { findEntry, messageArg } from '../../../quarantine/selection.js';

export default class UtilsQuarantineEdit extends GatewayCommand {
  static override description =
    'Opens the content in $VISUAL or $EDITOR, or reads it from a file or standard input, stores it in addition to the original, ' +
    'and reports whether the message would be accepted now. It stays quarantined until it is replayed.';
  static override examples = [
    '<%= config.bin %> utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file ./message.json',
    'jq .data.amount=5 message.json | <%= config.bin %> utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file -',
  ];
  static override flags = {
    file: valueFlag(
      '<path>',
      'File with the new content; - for standard input. [default: open an editor]',
    ),
  };
  static override args = messageArg;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineEdit);
    const id = idOf('the argument', args.id);
    const { config } = this.resolve(flags);
    const [{ editQuarantinedMessage, readReplayable }, { dryRun }, { idleSandbox, sandboxLimits }] =
      await Promise.all([
        import('@gateway/store/quarantine'),
        import('@gateway/ingest/once/replay'),
        import('@gateway/ingest/transform/sandboxes'),
      ]);
    // Closed before the editor opens, because editing can take an hour.
    const message = await withShards(config, async (shards) => {
      const { planes, entry } = await findEntry(shards.all, id);
      const { project_id: projectId, status } = entry;
      if (status !== 'quarantined')
        throw new GatewayError('conflict', { sentence: `the message ${id} is already ${status}` });
      return (await readReplayable(planes, [{ projectId, id }]))[0]!;
    });

    const { file } = flags;
    const inEditor =
      file === undefined ? await editInEditor(message.body, `${id}.json`) : undefined;
    const body = inEditor?.bytes ?? (await readInput('--file', file!));
    if (body.equals(message.body)) {
      await inEditor?.remove();
      this.log('unchanged; nothing was stored');
      return;
    }
    const editedAt = await withShards(config, async (shards) => {
      const { planes } = await findEntry(shards.all, id);
      const at = await editQuarantinedMessage(planes.data, message, body);
      if (at) return at;
      throw new GatewayError('conflict', {
        sentence: `someone replayed, discarded or edited the message ${id} meanwhile; nothing was stored`,
        fix: `check it with \`gateway utils quarantine show ${id}\` and decide again`,
      });
    }).catch((error: unknown) => {
      if (inEditor) this.logToStderr(`The edited content is in ${inEditor.path}.`);
      throw error;
    });
    await inEditor?.remove();
    this.log(`stored ${body.byteLength} bytes; the original is kept`);
    const sandbox = idleSandbox(sandboxLimits(config));
    try {
      this.log(
        `it ${resultLine(await dryRun({ ...message, body, editedAt }, { sandbox, maxMessageBytes: config.ingest.max_message_bytes }), true)}`,
      );
    } finally {
      await sandbox.close();
    }
    this.log(`next: gateway utils quarantine replay ${id}`);
  }
}
