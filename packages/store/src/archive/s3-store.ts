import {
  GetObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { networkReason } from '@gateway/core/errors';
import { unavailable, type ArchivePlace, type ObjectStore } from './object-store.js';

const CONNECT_MS = 5_000;
const REQUEST_MS = 60_000;

/** A bucket of Amazon S3, or of a store with the same API. */
export class S3Store implements ObjectStore {
  readonly place: string;
  readonly #client: S3Client;
  readonly #bucket: string;
  /** Empty, or ends in a slash. */
  readonly #prefix: string;

  constructor({
    url,
    region,
    endpoint,
    path_style,
    access_key_id,
    secret_access_key,
  }: ArchivePlace) {
    this.place = url;
    const [bucket = '', ...folders] = url.slice('s3://'.length).split('/');
    this.#bucket = bucket;
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
      // Some compatible stores reject the newer checksums. The signature covers the body.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: REQUEST_MS },
    });
  }

  async put(key: string, body: Uint8Array): Promise<void> {
    const put = new PutObjectCommand({
      ...this.#object(key),
      Body: body,
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
      throw unavailable(this.place, networkReason(error) ?? `${name}: ${message}`, error);
    }
  }
}
