import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { GatewayError } from '@gateway/core/errors';
import { GatewayCommand, jsonFlag } from '../../../app/gateway-command.js';
import { presentMessage } from '../../../quarantine/present.js';
import { idsOf } from '../../../quarantine/selection.js';
import { withDatabase } from '../../../app/database.js';
import { findEntries } from '../../../quarantine/entries.js';

export default class UtilsQuarantineShow extends GatewayCommand {
  static override description =
    'Shows where the message came from, why it was refused and what that means, and its bytes as they would be replayed. Characters that a terminal would ' +
    'obey are escaped; --raw writes the bytes as they are.';
  static override examples = [
    '<%= config.bin %> utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef',
    '<%= config.bin %> utils quarantine show 019ab3c4-5d6e-8f70-9123-456789abcdef --raw > message.json',
  ];
  static override flags = {
    raw: Flags.boolean({ summary: 'Write the bytes and nothing else.' }),
    original: Flags.boolean({ summary: 'The bytes as they came, of a message that was edited.' }),
    ...jsonFlag,
  };
  static override args = { id: Args.string({ required: true, ignoreStdin: true, description: 'Id of the message.' }) };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(UtilsQuarantineShow);
    const { raw: asBytes, json, original } = flags;
    if (asBytes && json) throw new GatewayError('wrong_use', { sentence: '--raw and --json exclude each other', fix: 'leave one away' });
    const ids = idsOf([args['id']]);
    const { config } = this.resolve(flags);
    const [{ findQuarantinedMessage }, { wholeRecord }] = await Promise.all([
      import('@gateway/store/quarantine'),
      import('../../../quarantine/record.js'),
    ]);
    const { entry, whole } = await withDatabase(config, async (database) => {
      const [entry] = await findEntries(database, ids);
      const whole = await findQuarantinedMessage(database.pool, entry!.project_id, entry!.id);
      return { entry: entry!, whole: original ? { raw: whole!.raw, edited_raw: null } : whole! };
    });
    if (asBytes) process.stdout.write(whole.edited_raw ?? whole.raw);
    else if (json) this.log(JSON.stringify(wholeRecord(entry, whole), null, 2));
    else this.log(presentMessage(entry, whole, process.stdout.columns));
  }
}
