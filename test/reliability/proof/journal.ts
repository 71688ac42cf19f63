/** A message written by the producer, in the order of numbers. */
export interface Produced {
  readonly n: number;
  readonly via: 'kafka' | 'sqs';
  /** The index of the project that reads it. */
  readonly project: number;
  /** An invalid message, which must end in quarantine. */
  readonly poisoned: boolean;
  /** If false, the broker may have the message zero, one or several times. */
  readonly acknowledgedByBroker: boolean;
}

/** A request to the receiver, and its response. */
export interface Arrival {
  readonly n: number;
  readonly webhookId: string;
  /** The sender's signed timestamp in seconds, `webhook-timestamp`: unaffected by delays. */
  readonly sentAtSeconds: number;
  /**
   * The time of recording, before the response; on a busy machine possibly long after the request
   * was sent.
   */
  readonly atMs: number;
  readonly status: number | 'hung';
  /** True if the Standard Webhooks signature matches the endpoint's secret. */
  readonly isSigned: boolean;
}

/**
 * An injected fault; times are in epoch milliseconds. `atMs` precedes the fault, `untilMs` follows
 * the confirmed repair.
 */
export interface FaultDone {
  readonly kind: string;
  readonly target: string;
  readonly atMs: number;
  readonly untilMs: number;
}

/** An agent interrupted in the middle of its work: its in-flight requests can arrive twice. */
export interface Kill {
  /** Its name in the database, `host:pid`. */
  readonly agent: string;
  /** Before the signal. */
  readonly atMs: number;
  /** A time at which the signal had certainly taken effect. */
  readonly untilMs: number;
  readonly kind: 'kill' | 'freeze';
}

/** The events of a run, observed outside the gateway. */
export interface Journal {
  readonly seed: number;
  readonly produced: readonly Produced[];
  readonly arrivals: readonly Arrival[];
  readonly faults: readonly FaultDone[];
  readonly kills: readonly Kill[];
}
