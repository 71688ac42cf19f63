// @ts-check
// The SQS emulator as a process of its own: `node sqs-server.mjs <port> <region>`. It keeps nothing on disk.
import { startFauxqs } from 'fauxqs';

const [port, region] = process.argv.slice(2);
await startFauxqs({ port: Number(port), logger: false, defaultRegion: String(region) });
