import type { Socket } from 'node:net';
import type pg from 'pg';

const CHECK_MS = 500;
/**
 * Without received bytes, Postgres is queried after this many checks: two seconds, not counting
 * time in which the process was suspended.
 */
const SILENT_CHECKS = 4;
/** Between two queries about a long statement. */
const SILENT_CHECKS_MAX = 64;
/** On a slow network. The backend is idle until a long statement has arrived. */
const BYTES_PER_CHECK = 128 * 1024;
const ANSWER_MS = 5_000;

interface WatchedClient {
  readonly client: pg.ClientBase;
  received: number;
  sent: number;
  sentBefore: number;
  quiet: number;
  unanswered: number;
  patience: number;
}

// The wait event type `Client` means that the backend waits for the client to send or receive:
// https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE
// With Citus, a backend that waits for a worker also waits for `ClientRead`, but is active.
const BACKENDS = `select pg_backend_pid() as own,
    array(select pid from pg_stat_activity where pid = any ($1::int[])
      and (wait_event_type is distinct from 'Client'
        or state = 'active' and wait_event = 'ClientRead' and exists (select from pg_extension where extname = 'citus'))) as working`;

/**
 * TCP notices half-open connections only after 15 minutes: a firewall has dropped their state, or
 * their address has moved in a failover. If a query stays silent, its backend is looked up in
 * pg_stat_activity over a new connection. If that is gone or waits for the client, the connection
 * is destroyed, and all others that have been idle as long.
 */
export class DeadConnectionDetector {
  readonly #connect: (withinMs: number) => Promise<pg.Client>;
  readonly #watched = new Set<WatchedClient>();
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> | undefined;

  /**
   * @param connect opens an unwatched connection that gives up after the given milliseconds, as
   *   does each query
   */
  constructor(connect: (withinMs: number) => Promise<pg.Client>) {
    this.#connect = connect;
  }

  watch(client: pg.ClientBase): void {
    const one = {
      client,
      received: 0,
      sent: 0,
      sentBefore: 0,
      quiet: 0,
      unanswered: 0,
      patience: SILENT_CHECKS,
    };
    this.#watched.add(one);
    client.once('end', () => this.#watched.delete(one));
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#asking;
  }

  #check(): void {
    for (const one of this.#watched) {
      const { bytesRead, bytesWritten } = socketOf(one.client);
      const isQuiet = bytesRead === one.received;
      one.quiet = isQuiet ? one.quiet + 1 : 0;
      one.unanswered = isQuiet && !one.client.readyForQuery ? one.unanswered + 1 : 0;
      if (one.unanswered === 0)
        Object.assign(one, { patience: SILENT_CHECKS, sentBefore: one.sent });
      Object.assign(one, { received: bytesRead, sent: bytesWritten });
    }
    const suspects = [...this.#watched].filter(
      (one) => one.unanswered >= one.patience + (one.sent - one.sentBefore) / BYTES_PER_CHECK,
    );
    if (suspects.length === 0 || this.#asking) return;
    // A failure means that Postgres is down, and says nothing about a single connection.
    this.#asking = this.#ask(suspects)
      .catch(() => undefined)
      .finally(() => (this.#asking = undefined));
  }

  async #ask(suspects: readonly WatchedClient[]): Promise<void> {
    const bytesOf = ({ client }: WatchedClient) => socketOf(client).bytesRead;
    const received = new Map(suspects.map((one) => [one, bytesOf(one)]));
    for (const one of suspects) one.patience = one.unanswered + SILENT_CHECKS;
    const working = await this.#workingBackends(suspects.map(({ client }) => client.processID));
    // Meanwhile, others may have received bytes.
    const silent = suspects.filter(
      (one) => this.#watched.has(one) && bytesOf(one) === received.get(one),
    );
    for (const one of silent)
      one.patience = one.unanswered + Math.min(one.unanswered, SILENT_CHECKS_MAX);
    const dead = working ? silent.filter(({ client }) => !working.includes(client.processID)) : [];
    if (dead.length === 0) return;
    const idle = [...this.#watched].filter(
      ({ client, quiet }) => client.readyForQuery && quiet >= SILENT_CHECKS,
    );
    for (const { client } of [...dead, ...idle])
      client.connection.stream.destroy(
        new Error(
          'Connection terminated: it received nothing while Postgres answered other connections',
        ),
      );
  }

  /** Undefined behind a pooler, which announces other PIDs. */
  async #workingBackends(pids: readonly number[]): Promise<readonly number[] | undefined> {
    const client = await this.#connect(ANSWER_MS);
    try {
      const { rows } = await client.query<{ own: number; working: number[] }>(BACKENDS, [pids]);
      return rows[0]!.own === client.processID ? rows[0]!.working : undefined;
    } finally {
      client.end().catch(() => undefined);
    }
  }
}

function socketOf({ connection }: pg.ClientBase): Socket {
  return connection.stream as Socket;
}
