import { decodeValue, encodeValue, type BreakerRecord, type SharedMap } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { BreakerPolicy } from '../config/breaker-policy.js';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { EndpointQueues, Trip } from '../model/delivery.js';
import {
  closeBreaker,
  countRequests,
  isSpent,
  openBreaker,
  grantProbe,
  windowRequests,
} from './breaker-record.js';

/** Interval at which the breakers of all agents are read and local counts are reported. */
const SYNC_MS = 1_000;
/** A prober silent this long after its request timeout is dead. */
const PROBE_GRACE_MS = 5_000;
const TRIES = 4;

/** `due`: one agent is granted a probe. `half_open`: only the probe in flight. */
export type Gate =
  | { readonly state: 'open'; readonly inMs: number; readonly openMs: number }
  | { readonly state: 'due' }
  | { readonly state: 'half_open'; readonly inMs: number };

interface KnownBreaker {
  readonly projectId: string;
  /** The record in KV; undefined: none. */
  text: string | undefined;
  record: BreakerRecord | undefined;
  /** The record was changed while KV was down. */
  isUnsaved: boolean;
  /** Requests and failures not yet reported to KV. */
  requests: number;
  failures: number;
  error: string;
  policy: BreakerPolicy;
  isReporting: boolean;
  /** Opened here and not agreed with other agents yet. */
  isOpenedHere: boolean;
}

interface CircuitBreakersOptions extends Pick<AgentContext, 'kv' | 'log'> {
  readonly name: string;
  readonly policyOf: (endpoint: Endpoint) => BreakerPolicy | undefined;
  readonly inFlight: Pick<EndpointQueues, 'wake'>;
  readonly backlogPacing: { hasten(endpoint: Endpoint, nowMs: number): void };
  readonly observers: readonly { tripped(trip: Trip): void }[];
}

/**
 * The circuit breakers of endpoints, shared through KV; a healthy endpoint has none. Local counts
 * are added up once a second. One request of the whole instance probes an endpoint. While KV is
 * down each agent uses its own counts.
 */
export class CircuitBreakers {
  readonly #map: SharedMap;
  readonly #known = new Map<string, KnownBreaker>();
  #notClosed = 0;
  /** The clock of KV minus the monotonic clock. */
  #offsetMs = Date.now() - performance.now();
  #isAway = false;
  #timer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;
  #stopped = false;

  constructor(private readonly options: CircuitBreakersOptions) {
    this.#map = options.kv.map('breakers');
    this.#schedule(0);
  }

  /** Returns the breakers of all agents that are open or half open, as read about once a second. */
  notClosed(): {
    readonly projectId: string;
    readonly endpointId: string;
    readonly state: 'open' | 'half_open';
  }[] {
    if (this.#notClosed === 0) return [];
    return [...this.#known].flatMap(([endpointId, { projectId, record }]) =>
      record && record.state !== 'closed' ? { projectId, endpointId, state: record.state } : [],
    );
  }

  /** Returns undefined when requests may be sent. Times are in milliseconds. */
  gateOf(endpointId: string): Gate | undefined {
    if (this.#notClosed === 0) return undefined;
    const record = this.#known.get(endpointId)?.record;
    if (!record || record.state === 'closed') return undefined;
    const inMs = record.until_ms - this.#nowMs();
    if (inMs <= 0) return { state: 'due' };
    return record.state === 'open'
      ? { state: 'open', inMs, openMs: (record.forget_ms - record.until_ms) / 2 }
      : { state: 'half_open', inMs };
  }

  /** Counts a request of a closed breaker. A failure may open it here immediately, in KV later. */
  countRequest(endpoint: Endpoint, isGood: boolean, error: string): void {
    let known = this.#known.get(endpoint.id);
    if (!known && isGood) return;
    const policy = this.options.policyOf(endpoint);
    if (!policy) return;
    if (!known)
      this.#known.set(endpoint.id, (known = { ...NOTHING, projectId: endpoint.projectId, policy }));
    // Requests in flight when it opened add nothing new.
    if (known.record && known.record.state !== 'closed') return;
    known.policy = policy;
    known.requests++;
    if (isGood) {
      // A full window of good requests starts a new window.
      if (known.failures === 0 && known.requests >= windowRequests(policy)) known.requests = 0;
      return;
    }
    known.failures++;
    known.error = error;
    if (known.isReporting) return;
    const { projectId, requests, failures } = known;
    const record = countRequests(
      known.record,
      { projectId, requests, failures },
      policy,
      this.#nowMs(),
    );
    if (record.state === 'closed' && requests < windowRequests(policy)) return;
    // Opens here immediately, then for other agents.
    known.isOpenedHere = record.state === 'open';
    this.#put(endpoint.id, known, record);
    void this.#report(endpoint.id, known);
  }

  /** Requests a probe. True: send one request and report it to `probed`. */
  async requestProbe(endpoint: Endpoint): Promise<boolean> {
    const known = this.#known.get(endpoint.id);
    if (!known) return false;
    known.policy = this.options.policyOf(endpoint) ?? known.policy;
    const leaseMs = endpoint.timeoutMs + PROBE_GRACE_MS;
    return this.#change(
      endpoint.id,
      known,
      (record) => record && grantProbe(record, this.options.name, leaseMs, this.#nowMs()),
    );
  }

  /** Reports the probe of this agent. Without a report another agent probes after a while. */
  async recordProbe(endpoint: Endpoint, isGood: boolean, error: string): Promise<void> {
    const known = this.#known.get(endpoint.id);
    const { policyOf, name, log, backlogPacing } = this.options;
    if (!known) return;
    // The breaker does not reopen without a policy.
    const policy = policyOf(endpoint);
    const isMine = (record: BreakerRecord | undefined): record is BreakerRecord =>
      record?.state === 'half_open' && record.by === name;
    const done = await this.#change(endpoint.id, known, (record) =>
      isMine(record)
        ? (isGood || !policy ? closeBreaker : openBreaker)(
            record,
            policy ?? known.policy,
            this.#nowMs(),
          )
        : undefined,
    );
    const { projectId, id: endpointId } = endpoint;
    if (!done) return;
    if (isGood) {
      log.info(
        { project_id: projectId, endpoint_id: endpointId },
        'The circuit breaker of an endpoint is closed: it answers well again.',
      );
      backlogPacing.hasten(endpoint, performance.now());
    } else this.#tellTrip({ projectId, endpointId, isFirst: false, failures: 1, error });
  }

  #tellTrip(trip: Trip): void {
    for (const observer of this.options.observers) observer.tripped(trip);
  }

  /** Loses counts that were not reported. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#syncing;
  }

  #nowMs(): number {
    return performance.now() + this.#offsetMs;
  }

  #schedule(inMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      // Every agent reads all records, so more failing endpoints make it less frequent.
      this.#syncing = this.#sync().finally(() => this.#schedule(SYNC_MS + this.#known.size));
    }, inMs);
    this.#timer.unref();
  }

  async #sync(): Promise<void> {
    if (!(await this.#read())) return;
    const reports = [...this.#known].filter(([, { failures }]) => failures > 0);
    await Promise.all(reports.map(([endpointId, known]) => this.#report(endpointId, known)));
  }

  /** Reads the records of all agents; false while KV is down. */
  async #read(): Promise<boolean> {
    let answer;
    try {
      answer = await this.#map.all();
    } catch {
      this.#isAway = true;
      return false;
    }
    this.#isAway = false;
    this.#offsetMs = answer.nowMs - performance.now();
    for (const [endpointId, text] of answer.entries) {
      let known = this.#known.get(endpointId);
      if (known && known.text === text) continue;
      const record = recordOf(text);
      if (!known && !record) continue;
      known ??= { ...NOTHING, projectId: record!.project_id };
      this.#known.set(endpointId, known);
      known.text = text;
      known.isUnsaved = false;
      this.#put(endpointId, known, record);
    }
    await Promise.all(
      [...this.#known].map(([endpointId, known]) =>
        this.#reconcile(endpointId, known, answer.entries.get(endpointId)),
      ),
    );
    return true;
  }

  /** Reconciles a record with KV, and forgets it once it is spent. */
  async #reconcile(
    endpointId: string,
    known: KnownBreaker,
    text: string | undefined,
  ): Promise<void> {
    if (known.isUnsaved) {
      // KV was down or lost its data.
      known.text = text;
      const { record } = known;
      await this.#change(endpointId, known, () => record);
      return;
    }
    if (text === undefined && known.text !== undefined) {
      known.text = undefined;
      this.#put(endpointId, known, undefined);
    }
    if (known.record && isSpent(known.record, this.#nowMs()) && known.failures === 0)
      await this.#change(endpointId, known, () => null);
    if (!known.record && known.failures === 0) this.#known.delete(endpointId);
  }

  async #report(endpointId: string, known: KnownBreaker): Promise<void> {
    if (known.isReporting) return;
    known.isReporting = true;
    try {
      const { requests, failures, projectId, error } = known;
      let isTrip = false;
      let total = failures;
      const done = await this.#change(endpointId, known, (record, shared) => {
        // Decides a breaker opened here again with all agents' counts; without KV it remains open.
        const isOpenHere = !shared && known.isOpenedHere && record !== undefined;
        const after = isOpenHere
          ? record
          : countRequests(record, { projectId, requests, failures }, known.policy, this.#nowMs());
        isTrip = after.state === 'open' && (isOpenHere || (record?.state ?? 'closed') === 'closed');
        total = after.failures;
        return after;
      });
      if (!done) return;
      known.requests -= requests;
      known.failures -= failures;
      if (!isTrip) return;
      const { log } = this.options;
      const seconds = Math.round(((known.record?.until_ms ?? 0) - this.#nowMs()) / 1000);
      log.warn(
        {
          project_id: projectId,
          endpoint_id: endpointId,
          requests: known.record?.requests,
          failures: total,
          seconds,
          last_error: error,
        },
        'The circuit breaker of an endpoint is open: it fails, and nothing is sent to it for a while. Its deliveries wait, and none is lost.',
      );
      this.#tellTrip({ projectId, endpointId, isFirst: true, failures: total, error });
    } finally {
      known.isReporting = false;
      known.isOpenedHere = false;
    }
  }

  /**
   * Changes a record here and in KV; returns whether it did.
   *
   * @param next null removes the record, undefined keeps it; `shared`: the record is KV's
   */
  async #change(
    endpointId: string,
    known: KnownBreaker,
    next: (record: BreakerRecord | undefined, shared: boolean) => BreakerRecord | null | undefined,
  ): Promise<boolean> {
    for (let tries = 0; tries < TRIES && !this.#isAway; tries++) {
      const from = known.text;
      const to = next(recordOf(from), true);
      if (to === undefined) return false;
      const text = to === null ? undefined : encodeValue('breaker', to);
      try {
        const [made] = await this.#map.change([{ field: endpointId, from, to: text }]);
        if (made) {
          known.text = text;
          known.isUnsaved = false;
          this.#put(endpointId, known, to ?? undefined);
          return true;
        }
        const { nowMs, entries } = await this.#map.all();
        this.#offsetMs = nowMs - performance.now();
        known.text = entries.get(endpointId);
        this.#put(endpointId, known, recordOf(known.text));
      } catch {
        this.#isAway = true;
      }
    }
    if (!this.#isAway) return false;
    const to = next(known.record, false);
    if (to === undefined) return false;
    known.isUnsaved = true;
    this.#put(endpointId, known, to ?? undefined);
    return true;
  }

  #put(endpointId: string, known: KnownBreaker, record: BreakerRecord | undefined): void {
    const [before, after] = [known.record?.state ?? 'closed', record?.state ?? 'closed'];
    known.record = record;
    if (before === after) return;
    if (before === 'closed') this.#notClosed++;
    if (after === 'closed') this.#notClosed--;
    this.options.inFlight.wake(endpointId);
  }
}

/** Undefined also for a record of another release: each release then counts on its own. */
const recordOf = (text: string | undefined) => decodeValue<BreakerRecord>('breaker', text);

const NOTHING = {
  text: undefined,
  record: undefined,
  isUnsaved: false,
  requests: 0,
  failures: 0,
  error: '',
  policy: {
    threshold: 1,
    minimumRequests: Infinity,
    windowMs: 60_000,
    openMs: 30_000,
    openMaxMs: 600_000,
  },
  isReporting: false,
  isOpenedHere: false,
} satisfies Partial<KnownBreaker>;
