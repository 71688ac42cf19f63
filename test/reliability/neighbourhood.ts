import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import {
  hostileEndpoints,
  type HostileEndpoint,
  type HostileEndpoints,
} from '../support/hostile-endpoints.js';
import { kafka } from '../support/kafka.js';
import { loopback } from '../support/ports.js';
import { kafkaSource, production, subscribed, type Production } from '../support/production.js';
import { until } from '../support/until.js';

/** A thousand endpoints behind one agent, nine of them hostile. */
export interface Neighbourhood {
  readonly gateway: Production;
  readonly hostile: HostileEndpoints;
  /**
   * Produces for `seconds` and waits until nothing is in flight. Returns the neighbours' latencies
   * from production to arrival, in milliseconds.
   */
  block(options: { seconds: number; rate: number; hostileRate: number }): Promise<number[]>;
  /** The attempt log of a hostile endpoint, newest first. */
  attempts(endpoint: HostileEndpoint): Promise<Attempt[]>;
  /** The agent's peak resident set in bytes. */
  peakRss(): number;
  rss(): number;
  cpu(): number;
  close(): Promise<void>;
}

export interface Attempt {
  readonly http_status: number | null;
  readonly error_class: string | null;
  readonly error: string | null;
  readonly response_body: string | null;
}

export const ENDPOINTS = 1_000;
/** Shorter than the default, so that a block ends soon. */
const HOSTILE_TIMEOUT_MS = 3_000;
const TICK_MS = 25;

/** Sets up a production gateway with one agent, a topic and the endpoints. */
export async function neighbourhood(): Promise<Neighbourhood> {
  const closing: (() => unknown)[] = [];
  const close = async () => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  try {
    const broker = await kafka();
    closing.push(() => broker.close());
    const hostile = await hostileEndpoints();
    closing.push(() => hostile.close());
    const latencies = new Map<number, number>();
    const receiver = http.createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const { n, at } = JSON.parse(body) as { n: number; at: number };
        // Ignores repeated deliveries.
        if (!latencies.has(n)) latencies.set(n, now() - at);
        response.end();
      });
    });
    receiver.keepAliveTimeout = 120_000;
    const port = await loopback(receiver);
    closing.push(() => (receiver.closeAllConnections(), receiver.close()));
    const gateway = await production({
      env: hostile.env,
      settings: {
        delivery: { allowed_networks: [hostile.network], ca_file: hostile.caFile },
        // Beyond its share of a second a project's responses are kept in part.
        limits: { response_bytes_per_second: 0 },
      },
    });
    closing.push(() => gateway.close());
    const ids = await neighbours(
      gateway,
      `http://127.0.0.1:${port}/`,
      ENDPOINTS - hostile.all.length,
    );
    const hostileIds = new Map<HostileEndpoint, string>();
    for (const endpoint of hostile.all) {
      const { uid } = await gateway.api('POST', '/endpoints', {
        name: endpoint.name,
        url: endpoint.url,
        http_timeout: HOSTILE_TIMEOUT_MS / 1000,
        strategy: { type: 'linear', duration: 1, retry_count: 0 },
      });
      hostileIds.set(endpoint, uid);
    }
    const topic = await kafkaSource(gateway, broker);
    const pid = gateway.agents[0]?.process.pid ?? 0;
    let peak = 0;
    const watching = setInterval(() => (peak = Math.max(peak, residentBytes(pid))), 100);
    closing.push(() => clearInterval(watching));
    let made = 0;
    let toHostile = 0;

    return {
      gateway,
      hostile,
      async block({ seconds, rate, hostileRate }) {
        const first = made;
        const startedAtMs = now();
        for (let tick = 1; tick <= (seconds * 1000) / TICK_MS; tick++) {
          const messages: string[] = [];
          const due = (perSecond: number) =>
            Math.floor((perSecond * tick * TICK_MS) / 1000) -
            Math.floor((perSecond * (tick - 1) * TICK_MS) / 1000);
          for (let k = due(rate); k > 0; k--)
            messages.push(message(ids[made % ids.length]!, made++));
          const bad = [...hostileIds.values()];
          for (let k = due(hostileRate * bad.length); k > 0; k--)
            messages.push(message(bad[toHostile++ % bad.length]!, -1));
          if (messages.length > 0) await broker.produce(topic, messages);
          await sleep(Math.max(0, startedAtMs + tick * TICK_MS - now()));
        }
        await until(
          `the neighbours' ${made - first} deliveries`,
          () => latencies.size === made,
        ).catch(async (error: unknown) => {
          throw new Error(`${(error as Error).message}; ${await unfinished(gateway)}`, {
            cause: error,
          });
        });
        await until('nothing to be under way', async () => {
          const [row] = await gateway.database.rows<{ n: number }>(
            `select count(*)::int as n from event_deliveries where status = 'processing'`,
          );
          return row?.n === 0;
        });
        return Array.from({ length: made - first }, (_, k) => latencies.get(first + k)!);
      },
      async attempts(endpoint) {
        const id = hostileIds.get(endpoint);
        const { content } = await gateway.api<{ content: { uid: string }[] }>(
          'GET',
          `/eventdeliveries?endpointId=${id}&status=success&status=failure&perPage=20`,
        );
        const lists = await Promise.all(
          content.map(({ uid }) =>
            gateway.api<{ content: Attempt[] }>('GET', `/eventdeliveries/${uid}/deliveryattempts`),
          ),
        );
        return lists.flatMap((list) => list.content);
      },
      peakRss: () => peak,
      rss: () => residentBytes(pid),
      cpu: () => cpuSeconds(pid),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The smallest value that is not below this share of the values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

async function unfinished(gateway: Production): Promise<string> {
  const rows = await gateway.database.rows(
    `select e.name, d.status, d.attempts, d.reason, count(*)::int as n, min(d.next_attempt_at) as due
     from event_deliveries d join endpoints e on e.id = d.endpoint_id where d.status <> 'success' group by 1, 2, 3, 4 order by n desc limit 20`,
  );
  return rows.map((row) => JSON.stringify(row)).join('\n');
}

/**
 * Creates many endpoints with one statement, as copies of an endpoint created by the API, each with
 * a distinct path.
 */
async function neighbours(gateway: Production, url: string, count: number): Promise<string[]> {
  const { uid } = await subscribed(gateway, url, ['none']);
  const { seal } = sealer(gateway.encryptionKey);
  const ids = Array.from({ length: count - 1 }, () => newId());
  const secrets = ids.map((id) =>
    seal(`whsec_${crypto.randomBytes(24).toString('base64')}`, ['endpoints', id, 'secrets']),
  );
  await gateway.database.rows(
    `insert into endpoints (project_id, id, name, url, secrets)
     select project_id, u.id, name, url || n, json_build_array(json_build_object('id', u.id, 'value', u.value, 'created_at', now(), 'expires_at', null))
     from endpoints e, unnest($2::uuid[], $3::text[]) with ordinality u(id, value, n) where e.id = $1`,
    [uid, ids, secrets],
  );
  return [uid, ...ids];
}

function message(endpointId: string, n: number): string {
  return JSON.stringify({
    event_type: 'order.created',
    endpoint_id: endpointId,
    data: { n, at: now(), note: 'x'.repeat(500) },
  });
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

/** CPU time of a process in seconds, in ticks of 10 ms; 0 on systems without /proc. */
function cpuSeconds(pid: number): number {
  if (!fs.existsSync('/proc/self/stat')) return 0;
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) / 100;
}

/** Resident memory of a process; 0 on systems without /proc, or if it has ended. */
function residentBytes(pid: number): number {
  try {
    return (
      Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) *
      1024
    );
  } catch {
    return 0;
  }
}
