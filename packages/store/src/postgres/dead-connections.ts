import type { Socket } from 'node:net';
import type pg from 'pg';

/** How often connections are looked at. */
const LOOK_MS = 500;
/** A statement that has heard nothing at so many looks in a row is asked about: two seconds, without the time in which this process itself stood still. */
const SILENT_LOOKS = 4;
/** One that takes long is asked about ever less often, and in the end every so many looks. */
const SILENT_LOOKS_MAX = 64;
/** As much of a statement as a slow network carries between two looks: a long one is on its way for longer, and its backend is idle until it is there. */
const CARRIED_BYTES = 128 * 1024;
/** Postgres that takes longer to take a connection, or to answer over it, is away as a whole. */
const ASK_MS = 5_000;

/** What node-postgres has and its types do not tell. */
interface Inside {
  readonly connection: { readonly stream: Socket };
  /** Of the backend that serves the connection, as that said when it was made. */
  readonly processID: number;
  /** False while a statement is under way. */
  readonly readyForQuery: boolean;
}

interface Watched {
  readonly client: Inside;
  /** Bytes that had come, and gone, when it was looked at last. */
  heard: number;
  sent: number;
  /** Bytes that had gone before the statement that is under way, or more of it than that. */
  sentBefore: number;
  /** Looks in a row at which no more had come. */
  quiet: number;
  /** The same, of the statement that is under way. */
  unanswered: number;
  /** Unanswered looks after which Postgres is asked. */
  patience: number;
}

/** Ids of backends that are at work, and that of the one that was asked. */
interface Backends {
  readonly own: number;
  readonly working: readonly number[];
}

// https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE: `Client` waits for the other side, to say something or to take its answer.
const BACKENDS = `select pg_backend_pid() as own,
    array(select pid from pg_stat_activity where pid = any ($1::int[]) and wait_event_type is distinct from 'Client') as working`;

/**
 * Ends connections that are dead without a word: a firewall has forgotten them, or their address is another server's since a failover, and the network
 * would take a quarter of an hour to say so. When a statement hears nothing for a while, a new connection asks Postgres what the backend of the silent
 * one is at. Is it gone, or waits for us as we wait for it, then no answer will come; a statement that merely takes long is left alone. With a dead
 * connection go those that are idle and have been quiet for as long: they died of the same, and one statement after the other would have to find them out.
 */
export class DeadConnectionDetector {
  readonly #connect: (withinMs: number) => Promise<pg.Client>;
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> | undefined;

  /** @param connect makes a connection that is not watched; it, and each answer over it, comes within so many milliseconds or not at all */
  constructor(connect: (withinMs: number) => Promise<pg.Client>) {
    this.#connect = connect;
  }

  /** Watches a connection that is ready, until its end. */
  watch(client: pg.ClientBase): void {
    const one = { client: client as unknown as Inside, heard: 0, sent: 0, sentBefore: 0, quiet: 0, unanswered: 0, patience: SILENT_LOOKS };
    this.#watched.add(one);
    client.once('end', () => this.#watched.delete(one));
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Looks no longer, and waits for a question that is under way. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#asking;
  }

  #look(): void {
    for (const one of this.#watched) {
      const { bytesRead, bytesWritten } = one.client.connection.stream;
      const isQuiet = bytesRead === one.heard;
      one.quiet = isQuiet ? one.quiet + 1 : 0;
      one.unanswered = isQuiet && !one.client.readyForQuery ? one.unanswered + 1 : 0;
      if (one.unanswered === 0) Object.assign(one, { patience: SILENT_LOOKS, sentBefore: one.sent });
      Object.assign(one, { heard: bytesRead, sent: bytesWritten });
    }
    const suspects = [...this.#watched].filter((one) => one.unanswered >= one.patience + (one.sent - one.sentBefore) / CARRIED_BYTES);
    if (suspects.length === 0 || this.#asking) return;
    // Without an answer Postgres is away, which says nothing of a single connection.
    this.#asking = this.#ask(suspects)
      .catch(() => undefined)
      .finally(() => (this.#asking = undefined));
  }

  async #ask(suspects: readonly Watched[]): Promise<void> {
    const bytesOf = ({ client }: Watched) => client.connection.stream.bytesRead;
    const heard = new Map(suspects.map((one) => [one, bytesOf(one)]));
    for (const one of suspects) one.patience = one.unanswered + SILENT_LOOKS;
    const backends = await this.#read(suspects.map(({ client }) => client.processID));
    // What has answered meanwhile lives.
    const silent = suspects.filter((one) => this.#watched.has(one) && bytesOf(one) === heard.get(one));
    for (const one of silent) one.patience = one.unanswered + Math.min(one.unanswered, SILENT_LOOKS_MAX);
    const dead = backends ? silent.filter(({ client }) => !backends.working.includes(client.processID)) : [];
    if (dead.length === 0) return;
    const idle = [...this.#watched].filter(({ client, quiet }) => client.readyForQuery && quiet >= SILENT_LOOKS);
    for (const one of [...dead, ...idle]) end(one);
  }

  /** What these backends are at; undefined behind a pooler, where the ids that a connection is told are not those of backends. */
  async #read(pids: readonly number[]): Promise<Backends | undefined> {
    const client = await this.#connect(ASK_MS);
    try {
      const { rows } = await client.query<Backends>(BACKENDS, [pids]);
      return rows[0]!.own === (client as unknown as Inside).processID ? rows[0] : undefined;
    } finally {
      client.end().catch(() => undefined);
    }
  }
}

/** Breaks it as the network would: whoever has a statement on it gets this error, and its pool lets go of it. */
function end({ client }: Watched): void {
  client.connection.stream.destroy(new Error('Connection terminated: nothing comes over it any more, though Postgres answers others'));
}
