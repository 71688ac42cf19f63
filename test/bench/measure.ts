import fs from 'node:fs';
import { Redis } from 'ioredis';
import pg from 'pg';

/** Counters of the services, and CPU seconds of each process with its children. */
export interface Sample {
  readonly atMs: number;
  readonly cpu: Readonly<Record<string, number>>;
  readonly statements: number;
  readonly walBytes: number;
  readonly kvCommands: number;
}

/** The difference of two samples per thousand events, or per second. */
export interface Cost {
  readonly seconds: number;
  readonly cpu: Readonly<Record<string, number>>;
  readonly statements: number;
  readonly walBytes: number;
  readonly kvCommands: number;
}

/** Reads the counters of Postgres (with pg_stat_statements), Redis and /proc. */
export class Meter {
  readonly #postgres: pg.Client;
  readonly #redis: Redis;
  #own = 0;

  constructor(postgresUrl: string, redisUrl: string) {
    this.#postgres = new pg.Client({ connectionString: postgresUrl });
    this.#redis = new Redis(redisUrl);
  }

  async open(): Promise<void> {
    await this.#postgres.connect();
    await this.#postgres.query('create extension if not exists pg_stat_statements');
  }

  async versions(): Promise<string> {
    const { rows } = await this.#postgres.query<{ server_version: string }>('show server_version');
    const redis = /redis_version:(\S+)/.exec(await this.#redis.info('server'))?.[1];
    return `Postgres ${rows[0]?.server_version}, Redis ${redis}`;
  }

  /** @param pids the root process of each part */
  async sample(pids: Readonly<Record<string, number>>): Promise<Sample> {
    const { rows } = await this.#postgres.query<{ statements: number; wal: string }>(
      `select (select coalesce(sum(calls), 0)::float8 from pg_stat_statements where query not like '%pg_stat_statements%') as statements,
              (pg_current_wal_lsn() - '0/0')::text as wal`,
    );
    const info = await this.#redis.info('stats');
    const table = processes();
    return {
      atMs: performance.now(),
      cpu: Object.fromEntries(
        Object.entries(pids).map(([name, pid]) => [name, cpuSeconds(table, pid)]),
      ),
      statements: rows[0]!.statements,
      walBytes: Number(rows[0]!.wal),
      // Each sample costs one command.
      kvCommands: Number(/total_commands_processed:(\d+)/.exec(info)?.[1] ?? 0) - this.#own++,
    };
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    await this.#postgres.end();
  }
}

export function costOf(before: Sample, after: Sample): Cost {
  return {
    seconds: (after.atMs - before.atMs) / 1000,
    cpu: Object.fromEntries(
      Object.entries(after.cpu).map(([name, seconds]) => [name, seconds - (before.cpu[name] ?? 0)]),
    ),
    statements: after.statements - before.statements,
    walBytes: after.walBytes - before.walBytes,
    kvCommands: after.kvCommands - before.kvCommands,
  };
}

type Processes = Map<number, { readonly parent: number; readonly seconds: number }>;

/**
 * https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html; clock ticks are hundredths of a
 * second on every Linux that Node supports.
 */
function processes(): Processes {
  const table: Processes = new Map();
  for (const name of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const fields = fs
        .readFileSync(`/proc/${name}/stat`, 'utf8')
        .split(') ')
        .at(-1)!
        .split(' ')
        .map(Number);
      const [, parent = 0] = fields;
      const ticks = fields.slice(11, 15).reduce((sum, one) => sum + one, 0);
      table.set(Number(name), { parent, seconds: ticks / 100 });
    } catch {
      // It has ended meanwhile.
    }
  }
  return table;
}

/** CPU seconds of a process and its descendants, including reaped ones. */
function cpuSeconds(table: Processes, root: number): number {
  const family = [root];
  for (let k = 0; k < family.length; k++)
    for (const [pid, { parent }] of table) if (parent === family[k]) family.push(pid);
  return family.reduce((sum, pid) => sum + (table.get(pid)?.seconds ?? 0), 0);
}
