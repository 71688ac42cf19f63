/** A message that the producer wrote, in the order in which it was numbered. */
export interface Produced {
  readonly n: number;
  readonly via: 'kafka' | 'sqs';
  /** It is no JSON, and has to end in quarantine. */
  readonly poisoned: boolean;
  /** Without it nobody knows: the broker may have the message, once or more often. */
  readonly acknowledgedByBroker: boolean;
}

/** A request that came to the receiver, and what it got for it. */
export interface Arrival {
  readonly n: number;
  readonly webhookId: string;
  /** The second in which it was sent, as its sender says under its signature: `webhook-timestamp`. Whoever is late, this is not. */
  readonly sentAtSeconds: number;
  /** When it was noted, before its answer; on a busy machine that may be long after it was sent. */
  readonly atMs: number;
  readonly status: number | 'hung';
  /** The signature is that of the endpoint's secret, by Standard Webhooks. */
  readonly isSigned: boolean;
}

/** A fault that was done; all times are milliseconds since 1970. `atMs` was noted before anything was done, `untilMs` when it was known to be undone. */
export interface FaultDone {
  readonly kind: string;
  readonly target: string;
  readonly atMs: number;
  readonly untilMs: number;
}

/** An agent that was stopped in the middle of its work: what it had in flight may arrive a second time. */
export interface Kill {
  /** Its name in the database, `host:pid`. */
  readonly agent: string;
  /** Before the signal. */
  readonly atMs: number;
  /** When it was known to have worked. */
  readonly untilMs: number;
  readonly kind: 'kill' | 'freeze';
}

/** What happened, as those saw it who stand outside of the gateway. */
export interface Journal {
  readonly seed: number;
  readonly produced: readonly Produced[];
  readonly arrivals: readonly Arrival[];
  readonly faults: readonly FaultDone[];
  readonly kills: readonly Kill[];
}
