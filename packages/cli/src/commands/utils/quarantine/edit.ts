import { GatewayError } from '@gateway/core/errors';
import {
  command,
  idArgument,
  projectFlag,
  readInput,
  valueFlag,
} from '../../../app/gateway-command.js';
import { editInEditor } from '../../../messages/editor.js';
import { contentOf, resultLine } from '../../../messages/message-text.js';
import { findMessages } from '../../../messages/selection.js';

export default command({
  description:
    'Opens the content in $VISUAL or $EDITOR, or reads it from a file or standard input, stores it in addition to the original, ' +
    'and reports whether the message would be accepted now. It stays quarantined until it is replayed.',
  examples: [
    'gateway utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef',
    'gateway utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file ./message.json',
    'jq .data.amount=5 message.json | gateway utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file -',
  ],
  flags: {
    file: valueFlag(
      '<path>',
      'File with the new content; - for standard input. [default: open an editor]',
    ),
    ...projectFlag,
  },
  args: idArgument('Id of the message.'),
  async run({ args: { id }, flags, api, log, note }) {
    // Closed before the editor opens, because editing can take an hour.
    const message = await api(async (all) => (await findMessages(all, [id], flags))[0]!.found);
    const { status, edited_at: editedAt, project_id: projectId } = message;
    if (status !== 'quarantined')
      throw new GatewayError('conflict', { sentence: `the message ${id} is already ${status}` });

    const { file } = flags;
    const before = contentOf(message);
    const inEditor = file === undefined ? await editInEditor(before, `${id}.json`) : undefined;
    const body = inEditor?.bytes ?? (await readInput('--file', file!));
    if (body.equals(before)) {
      await inEditor?.remove();
      return log('unchanged; nothing was stored');
    }
    await api(async (all) => {
      const { quarantine } = all.project(projectId);
      const now = await quarantine.get(id);
      if (now.status !== status || now.edited_at !== editedAt)
        throw new GatewayError('conflict', {
          sentence: `someone replayed, discarded or edited the message ${id} meanwhile; nothing was stored`,
          fix: `check it with \`gateway utils quarantine show ${id}\` and decide again`,
        });
      await quarantine.update(id, { raw: body.toString('base64'), raw_encoding: 'base64' });
      log(`stored ${body.byteLength} bytes; the original is kept`);
      log(`it ${resultLine(await quarantine.replay(id, { dry_run: true }), true)}`);
    }).catch((error: unknown) => {
      if (inEditor) note(`The edited content is in ${inEditor.path}.`);
      throw error;
    });
    await inEditor?.remove();
    log(`next: gateway utils quarantine replay ${id}`);
  },
});
