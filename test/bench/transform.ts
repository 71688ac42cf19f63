import { availableParallelism } from 'node:os';
import { Sandbox } from '@gateway/sandbox';

// Measures how many calls of a small function on 1 KB payloads a child process makes per second,
// and how long the first one takes. Run: node --import tsx test/bench/transform.ts [payloads per
// run, default 256] [seconds, default 5]

const batch = Number(process.argv[2] ?? 256);
const seconds = Number(process.argv[3] ?? 5);

const fn = {
  key: 'bench',
  text: `function transform(payload) {
  return { event_type: 'order.' + payload.status, owner_id: payload.customer, data: payload };
}`,
};

function payload(number: number): string {
  const lines = Array.from({ length: 12 }, (_, index) => ({
    sku: `item-${number}-${index}`,
    quantity: index + 1,
    price: 19.95,
    note: 'as ordered',
  }));
  return JSON.stringify({
    status: 'paid',
    customer: `customer-${number}`,
    id: number,
    lines,
    padding: '',
  }).padEnd(1024, ' ');
}

const payloads = Array.from({ length: batch }, (_, index) => payload(index));
const sandbox = new Sandbox({ processes: 1 });
try {
  const startedAt = performance.now();
  const [first] = await sandbox.run(fn, payloads.slice(0, 1));
  const readyMs = performance.now() - startedAt;
  if (first?.kind !== 'object')
    throw new Error(`The function was refused: ${JSON.stringify(first)}`);

  const runFor = async (ms: number): Promise<number> => {
    const from = performance.now();
    let calls = 0;
    // Two concurrent runs, as in a gateway that reads while the last batch is transformed.
    const lane = async (): Promise<void> => {
      while (performance.now() - from < ms) {
        const results = await sandbox.run(fn, payloads);
        calls += results.length;
      }
    };
    await Promise.all([lane(), lane()]);
    return (calls / (performance.now() - from)) * 1000;
  };
  await runFor(1000);
  const rate = await runFor(seconds * 1000);
  console.log(
    `transform: ${Math.round(rate)} calls/s, 1 child process, ${batch} payloads of ${payloads[0]!.length} bytes a run; ` +
      `first result after ${Math.round(readyMs)} ms; Node ${process.version}, ${availableParallelism()} cores`,
  );
} finally {
  await sandbox.close();
}
