import type { Duplex } from 'node:stream';
import { GatewayError } from '@gateway/core/errors';
import pg from 'pg';

/** Members omitted by the types of node-postgres. */
declare module 'pg' {
  interface ClientBase {
    readonly connection: { readonly stream: Duplex };
    readonly processID: number;
    /** False while a statement runs. */
    readonly readyForQuery: boolean;
    getStartupConf(): Record<string, string>;
    end(): Promise<void>;
  }
  interface PoolConfig {
    /** Whether a pooler in transaction mode may run each transaction in another session. */
    readonly isPooled?: boolean;
  }
  interface QueryConfig {
    readonly query_timeout?: number;
  }
}

/**
 * Startup parameters that contain settings, either as `options` in command-line syntax or by name.
 */
export type SessionStart = Readonly<Record<string, string>>;

export interface SessionConfig extends pg.ClientConfig {
  readonly start: SessionStart;
}

const { DATE, TIMESTAMP, TIMESTAMPTZ } = pg.types.builtins;

/**
 * A client that starts with only these settings. node-postgres would add those from PGOPTIONS and
 * PGREPLICATION.
 */
export class SessionClient extends pg.Client {
  readonly #start: SessionStart;

  constructor(config?: SessionConfig) {
    super(config);
    this.#start = config?.start ?? {};
    for (const type of [DATE, TIMESTAMP, TIMESTAMPTZ]) this.setTypeParser(type, readTime);
  }

  override getStartupConf(): Record<string, string> {
    const { options: _options, replication: _replication, ...given } = super.getStartupConf();
    return { ...given, ...this.#start };
  }
}

const parseTime = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date | number | null;

/**
 * Parses a time as a date, or as a number if infinite. For styles other than ISO, node-postgres
 * returns null, which would mean "no time", such as a key that never expires.
 * @throws GatewayError `database_time` for such styles
 */
function readTime(text: string): Date | number {
  const time = parseTime(text);
  if (time === null || Number.isNaN(Number(time)))
    throw new GatewayError('database_time', { text });
  return time;
}
