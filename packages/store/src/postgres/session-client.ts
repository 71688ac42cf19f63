import { GatewayError } from '@gateway/core/errors';
import pg from 'pg';

/** The startup parameters of a session that set something: `options`, as on a command line, or settings by their names. */
export type SessionStart = Readonly<Record<string, string>>;

export interface SessionConfig extends pg.ClientConfig {
  readonly start: SessionStart;
}

/** A member of node-postgres clients that its types omit. */
const Client = pg.Client as unknown as new (config: SessionConfig) => pg.Client & { getStartupConf(): Record<string, string> };

const { DATE, TIMESTAMP, TIMESTAMPTZ } = pg.types.builtins;

/** A connection that starts with these settings alone: node-postgres would add PGOPTIONS and PGREPLICATION of the environment. */
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

/** Infinity is a number. node-postgres makes null of any style but ISO, which would pass for "no time": a key that never expires. */
function readTime(text: string): Date | number {
  const time = parseTime(text);
  if (time === null || Number.isNaN(Number(time))) throw new GatewayError('database_time', { text });
  return time;
}
