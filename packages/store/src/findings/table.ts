import { things, upTo } from './wording.js';

/** Worst first. A project takes the severity of its worst finding. */
export const SEVERITIES = ['bad', 'unknown', 'warn'] as const;
export type Severity = (typeof SEVERITIES)[number];

type Row = readonly [severity: Severity, page: string, headline: string, ofSeveral?: string];

/**
 * Most harmful first. `#` is the count. Pages are relative to the project, apart from `/instance`;
 * a finding about one endpoint or source has the page of that.
 */
export const FINDINGS = {
  postgres_away: ['bad', '/instance', 'Postgres does not answer'],
  postgres_read_only: ['bad', '/instance', 'Postgres accepts no writes'],
  shard_away: ['bad', '/instance', 'The shard of the project cannot be used'],
  migrations_pending: ['bad', '/instance', 'The database lacks migrations'],
  agents_gone: ['bad', '/instance', 'No agent is running'],
  events_waiting: [
    'bad',
    '/events?status=pending',
    '# event waits to be routed',
    '# events wait to be routed',
  ],
  deliveries_late: [
    'bad',
    '/deliveries?status=waiting',
    '# delivery is late',
    '# deliveries are late',
  ],
  breakers_open: [
    'bad',
    '/endpoints?breaker=open',
    '# endpoint is failing',
    '# endpoints are failing',
  ],
  endpoints_inactive: [
    'bad',
    '/endpoints?status=inactive',
    '# endpoint is inactive',
    '# endpoints are inactive',
  ],
  endpoints_failing: ['bad', '/endpoints', '# endpoint is failing', '# endpoints are failing'],
  sources_failing: [
    'bad',
    '/sources?state=failing',
    '# source cannot be read',
    '# sources cannot be read',
  ],
  sources_unread: ['bad', '/sources?state=unknown', 'No agent reads sources'],
  kv_away: ['unknown', '/instance', 'Redis does not answer'],
  sources_unknown: [
    'unknown',
    '/sources?state=unknown',
    'The state of # source is unknown',
    'The state of # sources is unknown',
  ],
  endpoints_failing_partly: [
    'warn',
    '/endpoints',
    'Some requests to # endpoint fail',
    'Some requests to # endpoints fail',
  ],
  replicas_behind: ['warn', '/instance', 'A read replica is away or behind'],
  project_moving: ['warn', '/instance', 'The project is being moved to another shard'],
  sources_paused: ['warn', '/sources?state=paused', '# source is paused', '# sources are paused'],
  messages_quarantined: [
    'warn',
    '/quarantine',
    '# message is in quarantine',
    '# messages are in quarantine',
  ],
  deliveries_held: [
    'warn',
    '/endpoints?status=paused',
    '# delivery is held',
    '# deliveries are held',
  ],
  archive_failing: ['warn', '/instance', 'The archive cannot be written'],
} as const satisfies Readonly<Record<string, Row>>;

export type FindingCode = keyof typeof FINDINGS;

export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** Counted up to `SUMMARY_MAX`. */
  readonly count: number;
  readonly since: Date | null;
  readonly sentence: string;
  /** Where to fix it. */
  readonly page: string;
  readonly action: string;
}

/** The worst finding, and how many more there are. */
export function verdictOf([worst, ...others]: readonly [Finding, ...Finding[]]): string {
  const [, , one, several = one]: Row = FINDINGS[worst.code];
  const headline = (worst.count === 1 ? one : several).replace('#', upTo(worst.count));
  const more = others.length === 0 ? '' : `, and ${things(others.length, 'more problem')}`;
  return `${headline}${more}.`;
}
