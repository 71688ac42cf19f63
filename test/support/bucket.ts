import crypto from 'node:crypto';
import { startFauxqs } from 'fauxqs';

/** A private S3 emulator in this process. It accepts any key. */
export interface Bucket {
  /** The settings `archive.*`. */
  readonly settings: {
    readonly url: string;
    readonly endpoint: string;
    readonly region: string;
    readonly path_style: true;
    readonly access_key_id: string;
    readonly secret_access_key: string;
  };
  close(): Promise<void>;
}

/** Starts an emulator of the S3 protocol on loopback, with a bucket. */
export async function bucket(): Promise<Bucket> {
  const region = 'eu-west-1';
  const server = await startFauxqs({
    port: 0,
    host: '127.0.0.1',
    logger: false,
    defaultRegion: region,
  });
  const { bucketName } = server.createBucket(`archive-${crypto.randomBytes(6).toString('hex')}`);
  return {
    settings: {
      url: `s3://${bucketName}/events/all`,
      endpoint: `http://127.0.0.1:${server.port}`,
      region,
      path_style: true,
      access_key_id: 'test-access-key',
      secret_access_key: 'test-secret-key',
    },
    close: () => server.stop(),
  };
}
