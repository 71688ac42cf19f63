import type { Endpoint } from '@gateway/client';
import type { Open, Sealer } from '@gateway/core/crypto';
import { isGatewayError } from '@gateway/core/errors';
import type { Shards } from '@gateway/store/shards';
import {
  command,
  findIn,
  idFlag,
  jsonFlag,
  parseDuration,
  readInput,
  switchFlag,
  valueFlag,
  withShards,
  wrongUse,
  type Invocation,
} from '../../../app/gateway-command.js';
import { installation } from '../../../app/installation.js';

type Secret = Endpoint['secrets'][number];

const OVERLAP = '24h';
/** As in the management API. */
const OVERLAP_MAX = '30d';

export default command({
  description:
    'With --endpoint-id, creates a new secret for an endpoint and prints it once; the current secrets keep signing during the overlap. ' +
    'With --encryption-key-file, re-encrypts every stored secret with a new key, all or none; no agent may be running. Both ' +
    'can be repeated safely.',
  examples: [
    'gateway utils secrets rotate --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef',
    'gateway utils secrets rotate --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --overlap 7d',
    'openssl rand -base64 32 > new.key && gateway utils secrets rotate --encryption-key-file new.key --dry-run',
  ],
  flags: {
    'endpoint-id': idFlag('Endpoint that gets a new secret.'),
    overlap: valueFlag(
      '<duration>',
      `How long the current secrets keep signing; 0 expires them now. [default: ${OVERLAP}]`,
    ),
    'encryption-key-file': valueFlag(
      '<path>',
      'File with the new encryption key. The current key is the setting encryption_key.',
    ),
    'dry-run': switchFlag('Count the secrets to re-encrypt, without changing anything.'),
    ...jsonFlag,
  },
  async run({ flags, ...it }) {
    const { 'endpoint-id': id, 'encryption-key-file': keyFile, 'dry-run': dryRun, overlap } = flags;
    if ((id === undefined) === (keyFile === undefined))
      throw wrongUse(
        id === undefined
          ? 'gateway utils secrets rotate needs something to rotate'
          : '--endpoint-id and --encryption-key-file were both given',
        'set --endpoint-id for the secret of an endpoint, or --encryption-key-file for the key that encrypts all secrets',
      );
    if (keyFile !== undefined) {
      if (overlap !== undefined)
        throw wrongUse('--overlap has no effect with --encryption-key-file', 'omit it');
      return reseal(keyFile, dryRun, it);
    }
    if (dryRun) throw wrongUse('--dry-run has no effect with --endpoint-id', 'omit it');
    return rotateSecret(id!, overlapOf(overlap ?? OVERLAP), it);
  },
});

async function rotateSecret(
  id: string,
  overlapMs: number,
  { api, note, show }: Pick<Invocation, 'api' | 'note' | 'show'>,
): Promise<void> {
  const { name, secrets } = await api(async (all) => {
    const { endpoints } = (await findIn(all, {}, (it) => it.endpoints.get(id))).api;
    return endpoints.expireSecret(id, { expiration: overlapMs / 3_600_000 });
  });
  const [{ uid, value }, ...live] = secrets as [Secret, ...Secret[]];
  const others = live.map(({ uid, expires_at }) => ({ uid, expires_at }));
  show({ endpoint_id: id, uid, value, others }, () => value);
  note(
    `This is the new secret of the endpoint ${name}. It is not shown again. Deliveries are signed with it from now on.`,
  );
  const ends = others[0]?.expires_at;
  const old =
    others.length === 1
      ? 'The old secret stays valid'
      : `${others.length} old secrets stay valid, the last`;
  note(
    ends
      ? `${old} until ${ends}; update the receiver before then.`
      : 'No old secret is valid any more.',
  );
}

async function reseal(
  keyFile: string,
  dryRun: boolean,
  { config, note, table }: Pick<Invocation, 'config' | 'note' | 'table'>,
): Promise<void> {
  const settings = config();
  const [{ sealer }, { resealSecrets }] = await Promise.all([
    import('@gateway/core/crypto'),
    import('@gateway/store/config'),
  ]);
  const from = sealer(settings.encryption_key);
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
  const counts = await withShards(
    settings,
    ({ all, control }: Shards) => {
      const dataPlanes = all.map(({ database }) => database.pool);
      return resealSecrets(control.knex, { from, to, dryRun, connectionSchema, dataPlanes });
    },
    { open },
  );
  table(counts, [
    ['SECRETS', 'kind'],
    [dryRun ? 'WOULD BE RE-ENCRYPTED' : 'RE-ENCRYPTED', 'resealed'],
    ['ALREADY DONE', 'already'],
  ]);
  note(
    dryRun
      ? 'Nothing was changed. Stop all agents and servers before you run the command without --dry-run.'
      : 'Next: set encryption_key / GATEWAY_ENCRYPTION_KEY to the new key in every server and agent, then start them. A server that is still running encrypts ' +
          'with the old key: restart it, and run this command again, still configured with the old key. Keep the old key as long as you keep backups made with it.',
  );
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
