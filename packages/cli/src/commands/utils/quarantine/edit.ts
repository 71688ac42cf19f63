import { GatewayError } from '@gateway/core/errors';
import {
  GatewayCommand,
  idOf,
  projectFlag,
  projectIdOf,
  readInput,
  valueFlag,
} from '../../../app/gateway-command.js';
import { editInEditor } from '../../../quarantine/editor.js';
import { contentOf, resultLine } from '../../../quarantine/message-text.js';
import { findMessages, messageArg } from '../../../quarantine/selection.js';

export default class UtilsQuarantineEdit extends GatewayCommand {
  static override description =
    'Opens the content in $VISUAL or $EDITOR, or reads it from a file or standard input, stores it in addition to the original, ' +
    'and reports whether the message would be accepted now. It stays quarantined until it is replayed.';
  static override examples = [
    'gateway utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file ./message.json',
    'jq .data.amount=5 message.json | gateway utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file -',
  ];
  static override flags = {
    file: valueFlag(
      '<path>',
      'File with the new content; - for standard input. [default: open an editor]',
    ),
    ...projectFlag,
  };
  static override args = messageArg;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineEdit);
    const id = idOf('the argument', args.id);
    const wanted = { ids: [id], projectId: projectIdOf(flags) };
    // Closed before the editor opens, because editing can take an hour.
    const message = await this.api(
      flags,
      async (api) => (await findMessages(api, wanted))[0]!.found,
    );
    const { status, edited_at: editedAt, project_id: projectId } = message;
    if (status !== 'quarantined')
      throw new GatewayError('conflict', { sentence: `the message ${id} is already ${status}` });

    const { file } = flags;
    const before = contentOf(message);
    const inEditor = file === undefined ? await editInEditor(before, `${id}.json`) : undefined;
    const body = inEditor?.bytes ?? (await readInput('--file', file!));
    if (body.equals(before)) {
      await inEditor?.remove();
      this.log('unchanged; nothing was stored');
      return;
    }
    await this.api(flags, async (api) => {
      const { quarantine } = api.project(projectId);
      const now = await quarantine.get(id);
      if (now.status !== status || now.edited_at !== editedAt)
        throw new GatewayError('conflict', {
          sentence: `someone replayed, discarded or edited the message ${id} meanwhile; nothing was stored`,
          fix: `check it with \`gateway utils quarantine show ${id}\` and decide again`,
        });
      await quarantine.update(id, { raw: body.toString('base64'), raw_encoding: 'base64' });
      this.log(`stored ${body.byteLength} bytes; the original is kept`);
      this.log(`it ${resultLine(await quarantine.replay(id, { dry_run: true }), true)}`);
    }).catch((error: unknown) => {
      if (inEditor) this.logToStderr(`The edited content is in ${inEditor.path}.`);
      throw error;
    });
    await inEditor?.remove();
    this.log(`next: gateway utils quarantine replay ${id}`);
  }
}
