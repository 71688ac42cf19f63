import { decodeValue, encodeValue, type BreakerRecord, type SharedMap } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { BreakerPolicy } from '../config/breaker-policy.js';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { Trip } from '../model/delivery.js';
import {
  backOff,
  closeBreaker,
  countRequests,
  isSpent,
  openBreaker,
  grantProbe,
  windowRequests,
} from './breaker-record.js';
import type { QueuesInFlight } from './endpoint-queue.js';

/** A sync reads all breakers and reports local counts. */
const SYNC_MS = 1_000;
/**
 * After the request timeout, the result of a probe may still be reported for this long. Then its
 * agent is presumed dead, and another may probe.
 */
const PROBE_GRACE_MS = 5_000;
const TRIES = 4;

/**
 * Not closed. If `due`, one agent is granted a probe. If `half_open`, the probe is in flight and no
 * other request is sent.
 */
export type UnclosedBreaker =
  | { readonly state: 'open'; readonly inMs: number; readonly openMs: number }
  | { readonly state: 'due' }
  | { readonly state: 'half_open'; readonly inMs: number };

interface KnownBreaker {
  readonly projectId: string;
  /** As encoded in KV, or undefined if there is none. */
  text: string | undefined;
  record: BreakerRecord | undefined;
  /** Changed while KV was down and not yet in KV. */
  isUnsaved: boolean;
  /** Not yet reported to KV; `failures` is how many of them failed. */
  requests: number;
  failures: number;
  error: string;
  /** A delivery of an event that is not operational failed since the last trip here. */
  hasOrdinaryFailure: boolean;
  policy: BreakerPolicy;
  isReporting: boolean;
  /** This agent opened the breaker and the shared counts have not yet confirmed it. */
  isOpenedHere: boolean;
}

interface CircuitBreakersOptions extends Pick<AgentContext, 'kv' | 'log'> {
  readonly name: string;
  readonly policyOf: (endpoint: Endpoint) => BreakerPolicy | undefined;
  readonly inFlight: Pick<QueuesInFlight, 'wake'>;
  readonly backlogPacing: { expedite(endpoint: Endpoint, nowMs: number): void };
  readonly observers: readonly {
    tripped(trip: Trip): void;
    /** Called in every agent that knew the breaker as open or half-open. */
    closed?(endpointId: string): void;
  }[];
}

/**
 * Shared by all agents through KV. A healthy endpoint has none. Each agent adds its counts to KV
 * about once a second, and only one probe per endpoint is in flight across all agents. While KV is
 * down, each agent uses its own counts.
 */
export class CircuitBreakers {
  readonly #map: SharedMap;
  readonly #known = new Map<string, KnownBreaker>();
  #notClosed = 0;
  /** The KV clock minus the monotonic clock. */
  #offsetMs = Date.now() - performance.now();
  #isAway = false;
  #timer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;
  #stopped = false;

  constructor(private readonly options: CircuitBreakersOptions) {
    this.#map = options.kv.map('breakers');
    this.#schedule(0);
  }

  /** Open and half-open breakers of all agents, read about once a second. */
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

  /** Milliseconds until the endpoint may be called again, or 0 if it did not ask to wait. */
  backsOffMs(endpointId: string): number {
    const untilMs = this.#known.get(endpointId)?.record?.back_off?.until_ms;
    return untilMs === undefined ? 0 : Math.max(0, untilMs - this.#nowMs());
  }

  /** Endpoints that asked to wait, and still do. */
  backingOff(): { readonly projectId: string; readonly endpointId: string }[] {
    return [...this.#known].flatMap(([endpointId, { projectId }]) =>
      this.backsOffMs(endpointId) > 0 ? [{ projectId, endpointId }] : [],
    );
  }

  stateOf(endpointId: string): UnclosedBreaker | undefined {
    if (this.#notClosed === 0) return undefined;
    const record = this.#known.get(endpointId)?.record;
    if (!record || record.state === 'closed') return undefined;
    const inMs = record.until_ms - this.#nowMs();
    if (inMs <= 0) return { state: 'due' };
    return record.state === 'open'
      ? { state: 'open', inMs, openMs: (record.forget_ms - record.until_ms) / 2 }
      : { state: 'half_open', inMs };
  }

  /**
   * A failure may open the breaker, immediately in this agent and later in KV.
   *
   * @param isOperational whether the request delivered an operational event
   */
  countRequest(endpoint: Endpoint, isGood: boolean, error: string, isOperational = false): void {
    let known = this.#known.get(endpoint.id);
    if (!known && isGood) return;
    const policy = this.options.policyOf(endpoint);
    if (!policy) return;
    if (!known)
      this.#known.set(endpoint.id, (known = { ...NOTHING, projectId: endpoint.projectId, policy }));
    // Requests in flight when the breaker opened are not counted: they reveal nothing new.
    if (known.record && known.record.state !== 'closed') return;
    known.policy = policy;
    known.requests++;
    if (isGood) {
      // After a full window without failures, a new one starts.
      if (known.failures === 0 && known.requests >= windowRequests(policy)) known.requests = 0;
      return;
    }
    known.failures++;
    known.error = error;
    known.hasOrdinaryFailure ||= !isOperational;
    if (known.isReporting) return;
    const { projectId, requests, failures } = known;
    const record = countRequests(
      known.record,
      { projectId, requests, failures },
      policy,
      this.#nowMs(),
    );
    if (record.state === 'closed' && requests < windowRequests(policy)) return;
    // The breaker opens in this agent immediately, and for other agents once KV has the record.
    known.isOpenedHere = record.state === 'open';
    this.#put(endpoint.id, known, record);
    void this.#report(endpoint.id, known);
  }

  /**
   * Holds all deliveries of an endpoint that asks for fewer requests: here at once, and in other
   * agents after their next sync.
   *
   * @param askedMs the `Retry-After`, or null if there was none
   */
  backOff(endpoint: Endpoint, askedMs: number | null): void {
    const { id, projectId } = endpoint;
    const policy = this.options.policyOf(endpoint) ?? NOTHING.policy;
    const known = this.#known.get(id) ?? { ...NOTHING, projectId, policy };
    const next = (record: BreakerRecord | undefined) =>
      backOff(record, projectId, askedMs, policy, this.#nowMs());
    const record = next(known.record);
    if (!record) return;
    this.#known.set(id, known);
    this.#put(id, known, record);
    void this.#change(id, known, next);
  }

  /** If it resolves with true, send one request and report its result to `recordProbe`. */
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

  /** If the result is never reported, another agent probes once the probe's lease has ended. */
  async recordProbe(endpoint: Endpoint, isGood: boolean, error: string): Promise<void> {
    const known = this.#known.get(endpoint.id);
    const { policyOf, name, log, backlogPacing } = this.options;
    if (!known) return;
    // An endpoint without a policy has no breaker, so the breaker is closed even after a failed
    // probe.
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
        'Closed the circuit breaker of an endpoint that responds again.',
      );
      backlogPacing.expedite(endpoint, performance.now());
    } else
      this.#tellTrip({
        projectId,
        endpointId,
        isFirst: false,
        isOperational: false,
        failures: 1,
        error,
      });
  }

  #tellTrip(trip: Trip): void {
    for (const observer of this.options.observers) observer.tripped(trip);
  }

  /** Unreported counts are lost. */
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
      // Every agent reads all records, so the interval grows with their number.
      this.#syncing = this.#sync().finally(() => this.#schedule(SYNC_MS + this.#known.size));
    }, inMs);
    this.#timer.unref();
  }

  async #sync(): Promise<void> {
    if (!(await this.#read())) return;
    const reports = [...this.#known].filter(([, { failures }]) => failures > 0);
    await Promise.all(reports.map(([endpointId, known]) => this.#report(endpointId, known)));
  }

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

  /** Removes the record once it has no further effect. */
  async #reconcile(
    endpointId: string,
    known: KnownBreaker,
    text: string | undefined,
  ): Promise<void> {
    if (known.isUnsaved) {
      // KV was down or has lost its data, so this agent's record is written to it.
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
        // Whether a breaker opened by this agent stays open is decided again with the counts of all
        // agents. Without KV, it stays open.
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
        'Opened the circuit breaker of a failing endpoint. Its deliveries wait until a probe succeeds.',
      );
      const isOperational = !known.hasOrdinaryFailure;
      known.hasOrdinaryFailure = false;
      this.#tellTrip({
        projectId,
        endpointId,
        isFirst: true,
        isOperational,
        failures: total,
        error,
      });
    } finally {
      known.isReporting = false;
      known.isOpenedHere = false;
    }
  }

  /**
   * In this agent and in KV. Resolves with whether the record changed.
   *
   * @param next returns the new record, null to remove it, or undefined to keep it; `shared` is
   *   true if `record` is the one in KV
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
    if (after === 'closed') {
      this.#notClosed--;
      for (const observer of this.options.observers) observer.closed?.(endpointId);
    }
    this.options.inFlight.wake(endpointId);
  }
}

/** Ignores records of other releases, so each release counts on its own. */
const recordOf = (text: string | undefined) => decodeValue<BreakerRecord>('breaker', text);

const NOTHING = {
  text: undefined,
  record: undefined,
  isUnsaved: false,
  requests: 0,
  failures: 0,
  error: '',
  hasOrdinaryFailure: false,
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
