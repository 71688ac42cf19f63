/** Worst first. A project takes the severity of its worst finding. */
export const SEVERITIES = ['bad', 'unknown', 'warn'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** Texts of one and of several are separated by `|`. */
export type FindingRow = readonly [
  severity: Severity,
  page: string,
  headline: string,
  sentence: string,
];

/**
 * Most harmful first. Pages are relative to the project, apart from `/instance`; a finding about
 * one endpoint or source has the page of that. `{n}` is the count, `{since}` the beginning, empty
 * if that is unknown, and `{headline}` the headline.
 */
// Two lines per row keep the source readable as a table.
// prettier-ignore
export const FINDINGS = {
  postgres_away: ['bad', '/instance', 'Postgres does not answer',
    'Postgres has not answered{since}: nothing is accepted or delivered, and other states are unknown.'],
  postgres_read_only: ['bad', '/instance', 'Postgres accepts no writes',
    'Postgres has accepted no writes{since}: nothing is accepted or delivered.'],
  shard_away: ['bad', '/instance', 'The shard of the project cannot be used',
    'The shard {name} has not been usable{since}: events of this project on it are not accepted, shown or delivered.'],
  migrations_pending: ['bad', '/instance', 'The database lacks migrations', '{headline}: {reason}'],
  agents_gone: ['bad', '/instance', 'No agent is running', '{headline}{since}: nothing is routed or delivered.'],
  events_waiting: ['bad', '/events?status=pending', '{n} event waits to be routed|{n} events wait to be routed',
    '{headline}, the oldest for {age}.'],
  deliveries_late: ['bad', '/deliveries?status=waiting', '{n} delivery is late|{n} deliveries are late',
    '{n} delivery is due and not sent, the oldest for {age}.|{n} deliveries are due and not sent, the oldest for {age}.'],
  breakers_open: ['bad', '/endpoints?breaker=open', '{n} endpoint is failing|{n} endpoints are failing',
    'Deliveries to {names} have failed{since}: {waiting} waiting, breaker {until}.|Deliveries to {names} have failed{since}: {waiting} waiting, breakers open.'],
  endpoints_inactive: ['bad', '/endpoints?status=inactive', '{n} endpoint is inactive|{n} endpoints are inactive',
    '{names} has been inactive{since}, and gets no events. {reason}|{headline} and get no events, the first{since}.'],
  endpoints_failing: ['bad', '/endpoints', '{n} endpoint is failing|{n} endpoints are failing',
    'Requests to {names} fail: {failed} of {all}{since}.'],
  sources_failing: ['bad', '/sources?state=failing', '{n} source cannot be read|{n} sources cannot be read',
    'The source {names} has been failing{since}. {reason}|{headline}, the first{since}: {names}.'],
  sources_unread: ['bad', '/sources?state=unknown', 'No agent reads sources',
    'No agent reads {names}{since}: messages wait with the broker.'],
  kv_away: ['unknown', '/instance', 'Redis does not answer',
    'Redis has not answered{since}: the states of circuit breakers{sources} are unknown.'],
  sources_unknown: ['unknown', '/sources?state=unknown', 'The state of {n} source is unknown|The state of {n} sources is unknown',
    'Whether {names} can be read is unknown: no agent has reported it for 30 s.|Whether {names} can be read is unknown: no agent has reported them for 30 s.'],
  endpoints_failing_partly: ['warn', '/endpoints', 'Some requests to {n} endpoint fail|Some requests to {n} endpoints fail',
    'Some requests to {names} fail: {failed} of {all}{since}.'],
  replicas_behind: ['warn', '/instance', 'A read replica is away or behind', 'A read replica has been left out{since}: {reason}'],
  project_moving: ['warn', '/instance', 'The project is being moved to another shard',
    '{earlier} are still on the shard {from}{left}, are not listed or counted, and their deliveries wait{error}'],
  sources_paused: ['warn', '/sources?state=paused', '{n} source is paused|{n} sources are paused',
    'The source {names} has been paused{since}: messages wait with the broker.|{headline}, the first{since}: messages wait with the broker.'],
  keys_parked: ['warn', '/endpoints', '{n} ordered key is parked|{n} ordered keys are parked',
    'A delivery{at} failed for good, and those behind it with the same order key wait{since}: release, skip or discard it.|{headline}, the first{at}{since}: the deliveries behind wait until each is released, skipped or discarded.'],
  messages_quarantined: ['warn', '/quarantine', '{n} message is in quarantine|{n} messages are in quarantine',
    '{n} message could not be accepted: in quarantine{since}.|{n} messages could not be accepted: in quarantine, the first{since}.'],
  deliveries_held: ['warn', '/endpoints?status=paused', '{n} delivery is held|{n} deliveries are held',
    '{headline} for endpoints paused{since}.'],
  archive_failing: ['warn', '/instance', 'The archive cannot be written',
    'The archive has not been writable{since}: expired events are kept and fill the disk of Postgres, until it can be written or archive.give_up_before lets go of them. The log of the agents has the reason.'],
} as const satisfies Readonly<Record<string, FindingRow>>;

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
