// @ts-check
// The SQS emulator as a separate process: `node sqs-server.mjs <port> <region>`. Without
// persistence.
import { startFauxqs } from 'fauxqs';

const [port, region] = process.argv.slice(2);
await startFauxqs({ port: Number(port), logger: false, defaultRegion: String(region) });
