import { GatewayError } from '@gateway/core/errors';
import pg from 'pg';

/** Startup parameters with settings: `options`, in command-line syntax, or settings by name. */
export type SessionStart = Readonly<Record<string, string>>;

export interface SessionConfig extends pg.ClientConfig {
  readonly start: SessionStart;
}

/** The types of node-postgres omit the method. */
const Client = pg.Client as unknown as new (
  config: SessionConfig,
) => pg.Client & { getStartupConf(): Record<string, string> };

const { DATE, TIMESTAMP, TIMESTAMPTZ } = pg.types.builtins;

/** Starts with these settings alone: node-postgres would add PGOPTIONS and PGREPLICATION. */
export class SessionClient extends Client {
  readonly #start: SessionStart;

  constructor(config: SessionConfig) {
    super(config);
    this.#start = config.start;
    for (const type of [DATE, TIMESTAMP, TIMESTAMPTZ]) this.setTypeParser(type, readTime);
  }

  override getStartupConf(): Record<string, string> {
    const { options: _options, replication: _replication, ...given } = super.getStartupConf();
    return { ...given, ...this.#start };
  }
}

const parseTime = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date | number | null;

/**
 * Returns infinity as a number. node-postgres returns null for styles other than ISO, which would
 * mean "no time": a key that never expires.
 */
function readTime(text: string): Date | number {
  const time = parseTime(text);
  if (time === null || Number.isNaN(Number(time)))
    throw new GatewayError('database_time', { text });
  return time;
}
