// @ts-check
// The receiver of the benchmark, in a separate process: answers 200 immediately and records
// arrivals and latencies from the producer's timestamp. IPC: { reset }, { report } or { take } (a
// report, then a reset) → { count, unique, rate, p50, p95, p99 } (milliseconds; rate is of the
// middle 80 %).
import http from 'node:http';

const ID = /"id":(\d+)/;
const STAMP = /"stamp":([\d.]+)/;
const nowMs = () => performance.timeOrigin + performance.now();

/** @type {number[]} */
let arrivals = [];
/** @type {number[]} */
let latencies = [];
/** @type {Set<string>} */
let seen = new Set();

const server = http.createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    const atMs = nowMs();
    response.end('ok');
    const id = ID.exec(body)?.[1];
    const stamp = STAMP.exec(body)?.[1];
    if (id === undefined || stamp === undefined) return;
    seen.add(id);
    arrivals.push(atMs);
    latencies.push(atMs - Number(stamp));
  });
});
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined });
});

function forget() {
  arrivals = [];
  latencies = [];
  seen = new Set();
}

process.on('message', (/** @type {{ reset?: true, report?: true, take?: true }} */ asked) => {
  if (asked.reset) {
    forget();
    process.send?.({ count: 0 });
    return;
  }
  const sorted = Float64Array.from(latencies).sort();
  const at = (/** @type {number} */ share) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
  const from = arrivals[Math.floor(arrivals.length * 0.1)] ?? 0;
  const to = arrivals[Math.floor(arrivals.length * 0.9)] ?? 0;
  process.send?.({
    count: arrivals.length,
    unique: seen.size,
    rate: to > from ? (0.8 * arrivals.length * 1000) / (to - from) : null,
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
  });
  if (asked.take) forget();
});
process.on('disconnect', () => process.exit(0));
