import type { Duplex } from 'node:stream';
import { GatewayError } from '@gateway/core/errors';
import pg from 'pg';

/** The types of node-postgres omit these members. */
declare module 'pg' {
  interface ClientBase {
    readonly connection: {
      readonly stream: Duplex;
      on(event: 'parameterStatus', listener: (it: ParameterStatus) => void): unknown;
    };
    readonly processID: number;
    /** False while a statement runs. */
    readonly readyForQuery: boolean;
    getStartupConf(): Record<string, string>;
    end(): Promise<void>;
  }
  interface PoolConfig {
    /** Behind a pooler in transaction mode, each transaction may run in another session. */
    readonly isPooled?: boolean;
  }
  interface QueryConfig {
    readonly query_timeout?: number;
  }
}

interface ParameterStatus {
  readonly parameterName: string;
  readonly parameterValue: string;
}

/** Settings are either in `options`, in command-line syntax, or by name. */
export type SessionStart = Readonly<Record<string, string>>;

export interface SessionConfig extends pg.ClientConfig {
  readonly start: SessionStart;
}

/** Servers before 17 refuse a start with this parameter, so it is set after the start. */
const TRANSACTION_TIMEOUT = 'transaction_timeout';
const HAS_TRANSACTION_TIMEOUT = 17;

const { DATE, TIMESTAMP, TIMESTAMPTZ } = pg.types.builtins;

/** Starts with these settings only, without those of PGOPTIONS and PGREPLICATION. */
export class SessionClient extends pg.Client {
  readonly #start: SessionStart;

  constructor(config?: SessionConfig) {
    super(config);
    this.#start = config?.start ?? {};
    for (const type of [DATE, TIMESTAMP, TIMESTAMPTZ]) this.setTypeParser(type, readTime);
    // Without a listener, the end of a connection would end the process. A pool has none until
    // `connect` has ended, and none while the client is in use. Statements fail by themselves.
    this.on('error', () => undefined);
  }

  override connect(): Promise<this>;
  override connect(done: (error: Error | null, client?: this) => void): void;
  override connect(done?: (error: Error | null, client?: this) => void): Promise<this> | void {
    let version = 0;
    this.connection.on('parameterStatus', (it: ParameterStatus) => {
      if (it.parameterName === 'server_version') version = Number.parseInt(it.parameterValue);
    });
    const connected = super.connect().then(async () => {
      const { options } = this.#start;
      if (version >= HAS_TRANSACTION_TIMEOUT && options && !options.includes(TRANSACTION_TIMEOUT))
        await this.query(`set ${TRANSACTION_TIMEOUT} = 0`);
      return this;
    });
    // node-postgres keeps the socket if there is no password.
    connected.catch(() => this.connection.stream.destroy());
    if (!done) return connected;
    connected.then(() => done(null, this), done);
  }

  override getStartupConf(): Record<string, string> {
    const { options: _options, replication: _replication, ...given } = super.getStartupConf();
    return { ...given, ...this.#start };
  }
}

const parseTime = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date | number | null;

/**
 * A number if infinite. For styles other than ISO, node-postgres returns null, which would mean "no
 * time", such as a key that never expires.
 * @throws GatewayError `database_time`
 */
function readTime(text: string): Date | number {
  const time = parseTime(text);
  if (time === null || Number.isNaN(Number(time)))
    throw new GatewayError('database_time', { text });
  return time;
}
