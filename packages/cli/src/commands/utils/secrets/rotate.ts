import * as Flags from '@oclif/core/flags';
import { answerTable } from '../../../output/table.js';
import { parseDuration } from '../../../app/duration.js';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import type { Config } from '@gateway/core/config';
import { GatewayCommand, jsonFlag } from '../../../app/gateway-command.js';
import { installation } from '../../../app/installation.js';
import { withDatabase } from '../../../app/database.js';

const OVERLAP = '24h';
/** As long as over the management API. */
const OVERLAP_MAX = '30d';

export default class UtilsSecretsRotate extends GatewayCommand {
  static override description =
    'With --endpoint-id it gives an endpoint a new secret and prints it, this once; the present ones sign beside it for the overlap. With --encryption-key-file it seals ' +
    'every stored secret with a new encryption key, all or nothing, while no agent is running. Both are safe to run again.';
  static override examples = [
    '<%= config.bin %> utils secrets rotate --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    '<%= config.bin %> utils secrets rotate --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --overlap 7d',
    'openssl rand -base64 32 > new.key && <%= config.bin %> utils secrets rotate --encryption-key-file new.key --dry-run',
  ];
  static override flags = {
    'endpoint-id': Flags.string({ helpValue: '<id>', summary: 'Endpoint that gets a new secret.' }),
    overlap: Flags.string({
      helpValue: '<duration>',
      summary: `How long the present secrets of the endpoint still sign; 0 ends them now. [default: ${OVERLAP}]`,
    }),
    'encryption-key-file': Flags.string({
      helpValue: '<path>',
      summary: 'File with the new encryption key; the present one is the setting encryption_key.',
    }),
    'dry-run': Flags.boolean({ summary: 'Count what would be sealed anew, and change nothing.' }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsSecretsRotate);
    const [endpointId, overlap, keyFile] = ['endpoint-id', 'overlap', 'encryption-key-file'].map(
      (name) => flags[name] as string | undefined,
    );
    if ((endpointId === undefined) === (keyFile === undefined)) {
      throw new GatewayError('wrong_use', {
        sentence: endpointId === undefined ? 'it is not said what to rotate' : '--endpoint-id and --encryption-key-file were both given',
        fix: 'give --endpoint-id for the secret of an endpoint, or --encryption-key-file for the key that seals all secrets',
      });
    }
    const stray =
      endpointId === undefined ? (overlap === undefined ? undefined : '--overlap') : flags['dry-run'] === true ? '--dry-run' : undefined;
    if (stray !== undefined) {
      const other = endpointId === undefined ? '--encryption-key-file' : '--endpoint-id';
      throw new GatewayError('wrong_use', { sentence: `${stray} means nothing with ${other}`, fix: 'leave it away' });
    }
    const json = flags['json'] === true;
    if (endpointId !== undefined)
      await this.rotateSecret(endpointId, overlapMs(overlap ?? OVERLAP), () => this.resolve(flags).config, json);
    else await this.reseal(keyFile!, this.resolve(flags).config, { dryRun: flags['dry-run'] === true, json });
  }

  private async rotateSecret(id: string, overlap: number, configOf: () => Config, json: boolean): Promise<void> {
    if (!isId(id)) {
      throw new GatewayError('wrong_use', {
        sentence: `--endpoint-id must be an id, a UUID in lower case, not ${JSON.stringify(id)}`,
        fix: 'the management API shows the ids of endpoints as uid',
      });
    }
    const config = configOf();
    const [{ sealer }, secrets] = await Promise.all([import('@gateway/core/crypto'), import('@gateway/store/config')]);
    const secret = secrets.generateSecret();
    const { seal, open } = sealer(config.encryption_key);
    const record = secrets.sealSecret(secret, { seal });
    const { name, live } = await withDatabase(config, async (database) => {
      const endpoint = await secrets.findEndpointAnywhere(database.pool, id);
      // With another key than the agents have, they could not open the new secret.
      for (const { value } of endpoint?.secrets.slice(0, 1) ?? []) open(value);
      const row = endpoint && (await secrets.rotateSecret(database.knex, endpoint, record, overlap));
      if (!row) throw new GatewayError('not_found', { thing: 'endpoint', id });
      return { name: row.name, live: row.secrets };
    });
    const old = live.filter((it) => it.id !== record.id);
    if (json)
      this.log(
        JSON.stringify(
          { endpoint_id: id, uid: record.id, value: secret, others: old.map(({ id: uid, expires_at }) => ({ uid, expires_at })) },
          null,
          2,
        ),
      );
    else this.log(secret);
    const ends = old[0]?.expires_at;
    this.logToStderr(`This is the new secret of the endpoint ${name}; it is not shown again. Deliveries are signed with it from now on.`);
    this.logToStderr(
      ends
        ? `The ${old.length === 1 ? 'present one signs' : `${old.length} present ones sign`} beside it, the last until ${ends}: give the new one to the receiver before.`
        : 'No other one signs any more.',
    );
  }

  private async reseal(keyFile: string, config: Config, { dryRun, json }: { dryRun: boolean; json: boolean }): Promise<void> {
    const [{ sealer }, { newSealer }, { resealSecrets }] = await Promise.all([
      import('@gateway/core/crypto'),
      import('../../../new-sealer.js'),
      import('@gateway/store/config'),
    ]);
    const from = sealer(config.encryption_key);
    const to = await newSealer(keyFile, from);
    const { plugins } = installation();
    const counts = await withDatabase(config, async (database) => {
      return resealSecrets(database.knex, {
        from,
        to,
        dryRun,
        connectionSchema: (type) => plugins.find(({ kind, name }) => kind === 'source' && name === type)?.connectionSchema,
      });
    });
    this.log(
      answerTable(
        counts,
        [
          ['SECRETS', ({ kind }) => kind],
          [dryRun ? 'WOULD BE SEALED ANEW' : 'SEALED ANEW', ({ resealed }) => String(resealed)],
          ['HAD THE NEW KEY', ({ already }) => String(already)],
        ],
        { json },
      ),
    );
    if (dryRun) {
      this.logToStderr('Nothing was changed. Before it is run without --dry-run, stop all agents and servers.');
      return;
    }
    this.logToStderr(
      'Next: set encryption_key / GATEWAY_ENCRYPTION_KEY to the new key in every server and agent, then start them. A server that still runs goes on sealing with the old key: ' +
        'restart it, and run this once more, still configured with the old key. Keep the old key as long as backups are kept that were made with it.',
    );
  }
}

function overlapMs(text: string): number {
  if (text === '0') return 0;
  const ms = parseDuration('--overlap', text);
  if (ms <= parseDuration('--overlap', OVERLAP_MAX)) return ms;
  throw new GatewayError('wrong_use', {
    sentence: `--overlap is at most ${OVERLAP_MAX}, not ${text}`,
    fix: 'rotate again when it has passed',
  });
}
