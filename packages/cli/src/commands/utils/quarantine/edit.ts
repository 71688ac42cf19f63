import * as Flags from '@oclif/core/flags';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { ReplayableMessage } from '@gateway/store/quarantine';
import { withDatabase } from '../../../app/database.js';
import { idOf, readInput } from '../../../app/flag-values.js';
import { GatewayCommand } from '../../../app/gateway-command.js';
import { editInEditor } from '../../../quarantine/editor.js';
import { dryRunLine } from '../../../quarantine/message-text.js';
import { findEntries, messageArg } from '../../../quarantine/selection.js';

export default class UtilsQuarantineEdit extends GatewayCommand {
  static override description =
    'Opens the bytes in $VISUAL or $EDITOR, or takes new ones from a file or standard input, stores them beside the bytes that came, and tells whether the message ' +
    'would be accepted now. It stays quarantined until it is replayed.';
  static override examples = [
    '<%= config.bin %> utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file ./message.json',
    'jq .data.amount=5 message.json | <%= config.bin %> utils quarantine edit 019ab3c4-5d6e-8f70-9123-456789abcdef --file -',
  ];
  static override flags = {
    file: Flags.string({ helpValue: '<path>', summary: 'File with the new bytes, - for standard input; without it an editor opens.' }),
  };
  static override args = messageArg;

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineEdit);
    const id = idOf('the argument', args.id);
    const { config } = this.resolve(flags);
    // A person may edit for an hour: no connection waits for that.
    const message = await withDatabase(config, async (database) => {
      const [entry] = await findEntries(database, [id]);
      const { project_id: projectId, status } = entry!;
      if (status !== 'quarantined') throw new GatewayError('conflict', { sentence: `the message ${id} is ${status} already` });
      const { readReplayable } = await import('@gateway/store/quarantine');
      return (await readReplayable(database.pool, [{ projectId, id }]))[0]!;
    });

    const { file } = flags;
    const inEditor = file === undefined ? await editInEditor(message.body, `${id}.json`) : undefined;
    const body = inEditor?.bytes ?? (await readInput('--file', file!));
    if (body.equals(message.body)) {
      await inEditor?.remove();
      this.log('unchanged, nothing was stored');
      return;
    }
    const changed = { ...message, body };
    const editedAt = await store(config, changed).catch((error: unknown) => {
      if (inEditor) this.logToStderr(`The edited bytes are kept in ${inEditor.path}.`);
      throw error;
    });
    await inEditor?.remove();
    this.log(`stored ${body.byteLength} bytes; those that came are kept`);
    this.log(`it ${dryRunLine(await dryRun(config, { ...changed, editedAt }))}`);
    this.log(`next: gateway utils quarantine replay ${id}`);
  }
}

async function dryRun(config: Config, message: ReplayableMessage) {
  const [{ openDryRunner }, { stderrLog }] = await Promise.all([import('@gateway/agent/inspect'), import('../../../quarantine/replay.js')]);
  const runner = openDryRunner({ config, log: stderrLog });
  try {
    return await runner.dryRun(message);
  } finally {
    await runner.close();
  }
}

function store(config: Config, message: ReplayableMessage): Promise<Date> {
  return withDatabase(config, async (database) => {
    const { editQuarantinedMessage } = await import('@gateway/store/quarantine');
    const editedAt = await editQuarantinedMessage(database.pool, message, message.body);
    if (editedAt) return editedAt;
    throw new GatewayError('conflict', {
      sentence: `somebody replayed, discarded or edited the message ${message.id} meanwhile; nothing was stored`,
      fix: `look at it with \`gateway utils quarantine show ${message.id}\` and decide again`,
    });
  });
}
