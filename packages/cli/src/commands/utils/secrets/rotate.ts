import type { Endpoint } from '@gateway/client';
import type { Config, FlagValues } from '@gateway/core/config';
import type { Open, Sealer } from '@gateway/core/crypto';
import { isGatewayError } from '@gateway/core/errors';
import type { Shards } from '@gateway/store/shards';
import {
  findIn,
  Flags,
  GatewayCommand,
  idOf,
  jsonFlag,
  parseDuration,
  readInput,
  valueFlag,
  withShards,
  wrongUse,
} from '../../../app/gateway-command.js';
import { installation } from '../../../app/installation.js';

type Secret = Endpoint['secrets'][number];

const OVERLAP = '24h';
/** As in the management API. */
const OVERLAP_MAX = '30d';

export default class UtilsSecretsRotate extends GatewayCommand {
  static override description =
    'With --endpoint-id, creates a new secret for an endpoint and prints it once; the current secrets keep signing during the overlap. ' +
    'With --encryption-key-file, re-encrypts every stored secret with a new key, all or none; no agent may be running. Both ' +
    'can be repeated safely.';
  static override examples = [
    'gateway utils secrets rotate --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway utils secrets rotate --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --overlap 7d',
    'openssl rand -base64 32 > new.key && gateway utils secrets rotate --encryption-key-file new.key --dry-run',
  ];
  static override flags = {
    'endpoint-id': valueFlag('<id>', 'Endpoint that gets a new secret.'),
    overlap: valueFlag(
      '<duration>',
      `How long the current secrets keep signing; 0 expires them now. [default: ${OVERLAP}]`,
    ),
    'encryption-key-file': valueFlag(
      '<path>',
      'File with the new encryption key. The current key is the setting encryption_key.',
    ),
    'dry-run': Flags.boolean({
      summary: 'Count the secrets to re-encrypt, without changing anything.',
    }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsSecretsRotate);
    const {
      'endpoint-id': endpointId,
      'encryption-key-file': keyFile,
      'dry-run': dryRun,
      overlap,
      json,
    } = flags;
    if ((endpointId === undefined) === (keyFile === undefined))
      throw wrongUse(
        endpointId === undefined
          ? 'gateway utils secrets rotate needs something to rotate'
          : '--endpoint-id and --encryption-key-file were both given',
        'set --endpoint-id for the secret of an endpoint, or --encryption-key-file for the key that encrypts all secrets',
      );
    if (keyFile !== undefined) {
      if (overlap !== undefined)
        throw wrongUse('--overlap has no effect with --encryption-key-file', 'omit it');
      return this.reseal(keyFile, this.resolve(flags).config, { dryRun, json });
    }
    if (dryRun) throw wrongUse('--dry-run has no effect with --endpoint-id', 'omit it');
    const overlapMs = overlapOf(overlap ?? OVERLAP);
    const id = idOf('--endpoint-id', endpointId!);
    await this.rotateSecret(id, overlapMs, flags);
  }

  private async rotateSecret(id: string, overlapMs: number, flags: FlagValues): Promise<void> {
    const { name, secrets } = await this.api(flags, async (api) => {
      const { endpoints } = (await findIn(api, undefined, (it) => it.endpoints.get(id))).api;
      return endpoints.expireSecret(id, { expiration: overlapMs / 3_600_000 });
    });
    const [{ uid, value }, ...live] = secrets as [Secret, ...Secret[]];
    const others = live.map(({ uid, expires_at }) => ({ uid, expires_at }));
    this.log(
      flags['json'] ? JSON.stringify({ endpoint_id: id, uid, value, others }, null, 2) : value,
    );
    this.logToStderr(
      `This is the new secret of the endpoint ${name}. It is not shown again. Deliveries are signed with it from now on.`,
    );
    const ends = others[0]?.expires_at;
    const old =
      others.length === 1
        ? 'The old secret stays valid'
        : `${others.length} old secrets stay valid, the last`;
    this.logToStderr(
      ends
        ? `${old} until ${ends}; update the receiver before then.`
        : 'No old secret is valid any more.',
    );
  }

  private async reseal(
    keyFile: string,
    config: Config,
    { dryRun, json }: { dryRun: boolean; json: boolean },
  ): Promise<void> {
    const [{ sealer }, { resealSecrets }] = await Promise.all([
      import('@gateway/core/crypto'),
      import('@gateway/store/config'),
    ]);
    const from = sealer(config.encryption_key);
    const to = await newSealer(keyFile, from, sealer);
    const sources = installation().plugins.filter(({ kind }) => kind === 'source');
    const connectionSchema = (type: string) =>
      sources.find(({ name }) => name === type)?.connectionSchema;
    // A shard has the new key if the command was run before.
    const open: Open = (sealed, place) => {
      try {
        return from.open(sealed, place);
      } catch {
        return to.open(sealed, place);
      }
    };
    const reseal = ({ all, control }: Shards) => {
      const dataPlanes = all.map(({ database }) => database.pool);
      return resealSecrets(control.knex, { from, to, dryRun, connectionSchema, dataPlanes });
    };
    const counts = await withShards(config, reseal, { open });
    this.logTable(counts, { json }, [
      ['SECRETS', ({ kind }) => kind],
      [dryRun ? 'WOULD BE RE-ENCRYPTED' : 'RE-ENCRYPTED', ({ resealed }) => String(resealed)],
      ['ALREADY DONE', ({ already }) => String(already)],
    ]);
    this.logToStderr(
      dryRun
        ? 'Nothing was changed. Stop all agents and servers before you run the command without --dry-run.'
        : 'Next: set encryption_key / GATEWAY_ENCRYPTION_KEY to the new key in every server and agent, then start them. A server that is still running encrypts ' +
            'with the old key: restart it, and run this command again, still configured with the old key. Keep the old key as long as you keep backups made with it.',
    );
  }
}

/** Throws `wrong_use` if the file cannot be read, has no encryption key, or has the current one. */
async function newSealer(
  file: string,
  present: Sealer,
  sealer: (key: string) => Sealer,
): Promise<Sealer> {
  const text = (await readInput('--encryption-key-file', file)).toString('utf8').trim();
  const refuse = (sentence: string) =>
    wrongUse(
      `${file} ${sentence}`,
      'create one with `openssl rand -base64 32 > new.key`, and name that file',
    );
  let made: Sealer;
  try {
    made = sealer(text);
  } catch (error) {
    throw isGatewayError(error)
      ? refuse('does not hold an encryption key: it is not 32 bytes in base64')
      : error;
  }
  try {
    present.open(made.seal('', ['endpoints', '']), ['endpoints', '']);
  } catch {
    return made;
  }
  throw refuse('holds the current encryption key, not a new one');
}

function overlapOf(text: string): number {
  if (text === '0') return 0;
  const ms = parseDuration('--overlap', text);
  if (ms <= parseDuration('--overlap', OVERLAP_MAX)) return ms;
  throw wrongUse(
    `--overlap is at most ${OVERLAP_MAX}, not ${text}`,
    'rotate again when the overlap has passed',
  );
}
