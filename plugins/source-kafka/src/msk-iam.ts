import { createHash, createHmac } from 'node:crypto';
import { asProcess, ErrorChain, explainNetwork, PluginError } from '@gateway/plugin';
import type { Token } from './oauth-bearer.js';

export interface MskIam {
  readonly region: string;
  readonly access_key_id?: string | undefined;
  readonly secret_key?: string | undefined;
  readonly role_arn?: string | undefined;
  readonly external_id?: string | undefined;
}

interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

const SERVICE = 'kafka-cluster';
const EXPIRES_IN_SECONDS = 900;

/**
 * The base64url of a presigned connect request (https://github.com/aws/aws-msk-iam-sasl-signer-js).
 * Rejects with a `PluginError` if there are no credentials.
 */
export async function mskToken(iam: MskIam): Promise<Token> {
  const credentials = await credentialsOf(iam).catch((error: unknown) => {
    throw explained(error, iam);
  });
  const now = new Date();
  const endsAt = Math.min(
    now.getTime() + EXPIRES_IN_SECONDS * 1000,
    credentials.expiration?.getTime() ?? Infinity,
  );
  const url = `${presigned(`kafka.${iam.region}.amazonaws.com`, iam.region, credentials, now)}&User-Agent=gateway`;
  return { value: Buffer.from(url).toString('base64url'), askedAt: now.getTime(), endsAt };
}

/**
 * `GET https://<host>/?Action=kafka-cluster:Connect`:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
 */
function presigned(
  host: string,
  region: string,
  { accessKeyId, secretAccessKey, sessionToken }: Credentials,
  now: Date,
): string {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const scope = [time.slice(0, 8), region, SERVICE, 'aws4_request'];
  const query = Object.entries({
    Action: `${SERVICE}:Connect`,
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': [accessKeyId, ...scope].join('/'),
    'X-Amz-Date': time,
    'X-Amz-Expires': String(EXPIRES_IN_SECONDS),
    ...(sessionToken !== undefined && { 'X-Amz-Security-Token': sessionToken }),
    'X-Amz-SignedHeaders': 'host',
  })
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
  const request = ['GET', '/', query, `host:${host}`, '', 'host', sha256('')].join('\n');
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = hmac(
    key,
    ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(request)].join('\n'),
  ).toString('hex');
  return `https://${host}/?${query}&X-Amz-Signature=${signature}`;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string) =>
  createHmac('sha256', key).update(text).digest();

/**
 * From the connection or, without any, from the process: environment, profile, web identity,
 * container or instance. With a role, they are used to assume it.
 */
async function credentialsOf({
  region,
  access_key_id: key,
  secret_key: secret,
  role_arn: role,
  external_id,
}: MskIam): Promise<Credentials> {
  const keys =
    key !== undefined && secret !== undefined
      ? { accessKeyId: key, secretAccessKey: secret }
      : undefined;
  if (keys && role === undefined) return keys;
  // Disable the SDK's warning about Node.js versions it will stop supporting: the gateway chooses
  // the version.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
  const { fromNodeProviderChain, fromTemporaryCredentials } =
    await import('@aws-sdk/credential-providers');
  const clientConfig = { region };
  const ofProcess = fromNodeProviderChain({ clientConfig });
  if (role === undefined) return asProcess(ofProcess);
  const params = {
    RoleArn: role,
    RoleSessionName: 'gateway',
    ...(external_id !== undefined && { ExternalId: external_id }),
  };
  return fromTemporaryCredentials({
    params,
    clientConfig,
    masterCredentials: keys ?? (() => asProcess(ofProcess)),
  })();
}

/** Explains why there are no credentials. */
function explained(
  error: unknown,
  { region, access_key_id: key, role_arn: role }: MskIam,
): PluginError {
  const chain = new ErrorChain(error);
  const because = (message: string, fix: string) => new PluginError(message, { fix, cause: error });
  const [reason = ''] = chain.messages.split('\n');
  const keys = key === undefined ? 'The credentials of this process' : `The access key ${key}`;
  if (chain.has('CredentialsProviderError')) {
    const fix =
      'Set auth.access_key_id and auth.secret_key; or give the machines of server and agents credentials: environment, profile, web identity, or a role.';
    return because('This process has no AWS credentials.', fix);
  }
  if (chain.has(/sts:AssumeRole/)) {
    const fix =
      'Name its identity in the trust policy of the role, let it use sts:AssumeRole on the role, and check auth.role_arn and auth.external_id.';
    return because(`${keys} may not assume the role ${role}.`, fix);
  }
  const check = 'Check auth.region, and that this machine reaches STS.';
  const fixes = {
    wrongHost: check,
    expired: check,
    untrusted: check,
    noTls: check,
    unresolved: check,
    refused: check,
    silent: check,
  };
  const network = explainNetwork(chain, {
    place: `STS in ${region}`,
    authority: 'a known authority',
    fixes,
  });
  const fix =
    key === undefined
      ? 'Check where this process has them from.'
      : 'Check auth.access_key_id and auth.secret_key.';
  return network ?? new PluginError(`${keys} cannot be used.`, { fix, cause: error, said: reason });
}
