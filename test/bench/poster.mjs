// @ts-check
// Posts events to a URL, or to several in turn: node poster.mjs OPTIONS, or with - as the argument
// and the options on the standard input. Options, as JSON: { url or urls, headers, connections,
// seconds or count, rate, batch }. Rate 0 is as fast as responses arrive; otherwise posts are
// scheduled individually and timestamped. Prints { posted, rate, p50, p95, p99, statuses }
// (milliseconds) as JSON.
import fs from 'node:fs';
import { Pool } from 'undici';
import { setTimeout as sleep } from 'node:timers/promises';

const [, , given = '{}'] = process.argv;
const {
  url,
  urls = [url],
  headers,
  connections,
  seconds = Infinity,
  count = Infinity,
  rate,
  batch = 0,
} = JSON.parse(given === '-' ? fs.readFileSync(0, 'utf8') : given);
const { origin } = new URL(urls[0]);
const paths = urls.map((/** @type {string} */ one) => new URL(one).pathname);
const pool = new Pool(origin, { connections, pipelining: 1 });
const padding = 'x'.repeat(820);
/** @type {number[]} */
const latencies = [];
/** @type {Record<string, number>} */
const statuses = {};
let made = 0;

const event = () => {
  const stamp = (performance.timeOrigin + performance.now()).toFixed(3);
  return `{"event_type":"order.created","data":{"id":${made++},"stamp":${stamp},"customer":{"name":"Jürgen","vip":true},"note":"${padding}"}}`;
};

async function post() {
  const path = paths[made % paths.length];
  const body =
    batch > 0 ? `{"events":[${Array.from({ length: batch }, event).join(',')}]}` : event();
  const beganMs = performance.now();
  const { statusCode, body: answer } = await pool.request({ method: 'POST', path, headers, body });
  await answer.dump();
  latencies.push(performance.now() - beganMs);
  statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
}

const beganMs = performance.now();
const endMs = beganMs + seconds * 1000;
if (rate === 0) {
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < endMs && made < count) await post();
    }),
  );
} else {
  /** @type {Set<Promise<void>>} */
  const sending = new Set();
  for (let n = 0; n < rate * seconds; n++) {
    await sleep(Math.max(0, beganMs + (n * 1000) / rate - performance.now()));
    const sent = post().finally(() => sending.delete(sent));
    sending.add(sent);
  }
  await Promise.all(sending);
}
const tookMs = performance.now() - beganMs;
const sorted = Float64Array.from(latencies).sort();
const at = (/** @type {number} */ share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
console.log(
  JSON.stringify({
    posted: made,
    rate: (made * 1000) / tookMs,
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    statuses,
  }),
);
await pool.close();
