import { createHash } from 'node:crypto';
import {
  GetObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  type PutObjectCommandInput,
} from '@aws-sdk/client-s3';
import { networkReason } from '@gateway/core/errors';
import type { ArchivePlace } from '@gateway/store/retention/archive';
import { unavailable, type ObjectStore } from './object-store.js';

const CONNECT_MS = 5_000;
const REQUEST_MS = 60_000;

const CREDENTIALS =
  'correct archive.access_key_id and archive.secret_access_key or, without them, the AWS credentials of the process';
const RIGHTS = 'allow these credentials s3:GetObject, s3:PutObject and s3:ListBucket';
/** How to fix what the start of an error's name and message says. The first match applies. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [
    /kms/i,
    'check archive.sse_kms_key_id, and allow these credentials kms:GenerateDataKey and kms:Decrypt with that key',
  ],
  [
    /^(AccessDenied|Forbidden|AllAccessDisabled)/,
    `${RIGHTS}; if the policy of the bucket demands encryption, set archive.sse and archive.sse_kms_key_id as it says`,
  ],
  [
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|CredentialsProvider)/,
    CREDENTIALS,
  ],
  [/^NoSuchBucket/, 'create the bucket, or correct archive.url'],
  [
    /^(PermanentRedirect|AuthorizationHeaderMalformed|301)/,
    'set archive.region to the region of the bucket',
  ],
  [
    /^(InvalidEncryption|ServerSideEncryption|InvalidArgument.*encrypt)/,
    'set archive.sse as the store requires, or remove it',
  ],
  [/^RequestTimeTooSkewed/, 'set the clock of this machine'],
  [
    /^(SlowDown|ServiceUnavailable|InternalError|50\d)/,
    'wait: the store is busy, and it is tried again',
  ],
];

/** A bucket of Amazon S3, or of a store with the same API. */
export class S3Store implements ObjectStore {
  readonly place: string;
  readonly #client: S3Client;
  readonly #bucket: string;
  /** Empty, or ends in a slash. */
  readonly #prefix: string;
  readonly #encryption: Pick<PutObjectCommandInput, 'ServerSideEncryption' | 'SSEKMSKeyId'>;

  constructor({
    url,
    region,
    endpoint,
    path_style,
    access_key_id,
    secret_access_key,
    sse,
    sse_kms_key_id,
  }: ArchivePlace) {
    this.place = url;
    const [bucket = '', ...folders] = url.slice('s3://'.length).split('/');
    this.#bucket = bucket;
    this.#encryption = {
      ...(sse !== undefined && { ServerSideEncryption: sse }),
      ...(sse_kms_key_id !== undefined && { SSEKMSKeyId: sse_kms_key_id }),
    };
    this.#prefix = folders
      .filter(Boolean)
      .map((it) => `${it}/`)
      .join('');
    // The gateway chooses the version of Node.js, so it turns off the SDK's warning about it.
    process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
    this.#client = new S3Client({
      ...(region !== undefined && { region }),
      // Compatible stores ignore the region, but the client requires one.
      ...(endpoint !== undefined && { endpoint, region: region ?? 'us-east-1' }),
      forcePathStyle: path_style,
      // Without a key, the client looks in the environment, the profile, the web identity, and the
      // container or machine.
      ...(access_key_id !== undefined &&
        secret_access_key !== undefined && {
          credentials: { accessKeyId: access_key_id, secretAccessKey: secret_access_key },
        }),
      // Some compatible stores reject the newer checksums. `put` sends the one that all know.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: REQUEST_MS },
    });
  }

  async put(key: string, body: Uint8Array): Promise<void> {
    const put = new PutObjectCommand({
      ...this.#object(key),
      ...this.#encryption,
      Body: body,
      // Buckets with Object Lock require a checksum:
      // https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-managing.html
      ContentMD5: createHash('md5').update(body).digest('base64'),
      ContentLength: body.length,
    });
    await this.#explained(() => this.#client.send(put));
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#explained(async () => {
      try {
        const { Body } = await this.#client.send(new GetObjectCommand(this.#object(key)));
        return await Body?.transformToByteArray();
      } catch (error) {
        if (error instanceof NoSuchKey) return undefined;
        throw error;
      }
    });
  }

  async folders(folder: string): Promise<string[]> {
    const under = this.#prefix + folder;
    const names: string[] = [];
    for (let token: string | undefined, isFirst = true; isFirst || token; isFirst = false) {
      const list = new ListObjectsV2Command({
        Bucket: this.#bucket,
        Prefix: under,
        Delimiter: '/',
        ContinuationToken: token,
      });
      const page = await this.#explained(() => this.#client.send(list));
      for (const { Prefix = '' } of page.CommonPrefixes ?? [])
        names.push(Prefix.slice(under.length, -1));
      token = page.NextContinuationToken;
    }
    return names.sort();
  }

  close(): void {
    this.#client.destroy();
  }

  #object(key: string) {
    return { Bucket: this.#bucket, Key: this.#prefix + key };
  }

  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { name, message } = error as Error;
      const network = networkReason(error);
      const reason = network ?? `${name}: ${message}`;
      const fix =
        network === undefined
          ? FIXES.find(([says]) => says.test(reason))?.[1]
          : 'check archive.endpoint and archive.region, and that this machine reaches the store';
      throw unavailable(this.place, reason, { fix, cause: error });
    }
  }
}
