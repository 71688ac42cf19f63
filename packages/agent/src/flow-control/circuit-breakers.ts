import type { Log } from '@gateway/core/logging';
import type { BreakerRecord, Kv, SharedMap } from '@gateway/store/kv';
import { closed, counted, isSpent, opened, probing, windowRequests, type BreakerPolicy } from './circuit-breaker-state.js';
import type { Endpoint } from '../config/config-cache.js';

/** How often the breakers of all agents are read, and what this one has counted is told to them. */
const SYNC_MS = 1_000;
/** A prober that is not heard of for so long beyond the time that its request may take is dead. */
const PROBE_GRACE_MS = 5_000;
/** Tries of a change that others keep getting in before. */
const TRIES = 4;

/** What an endpoint's breaker lets through now. */
export type Gate =
  /** Nothing, for so long. */
  | { readonly state: 'open'; readonly inMs: number; readonly openMs: number }
  /** A probe, by whoever is granted one. */
  | { readonly state: 'due' }
  /** Nothing but the probe that is under way, for so long at most. */
  | { readonly state: 'half_open'; readonly inMs: number };

interface Known {
  readonly projectId: string;
  /** As KV has it; undefined: it has none. */
  text: string | undefined;
  record: BreakerRecord | undefined;
  /** The record was changed while KV was away. */
  isUnsaved: boolean;
  /** Requests that KV does not know of yet. */
  requests: number;
  failures: number;
  /** What is failing, in words, for the log. */
  error: string;
  /** The policy that the last request was judged by. */
  policy: BreakerPolicy;
  isReporting: boolean;
  /** It was opened here, and the others have not agreed yet. */
  isOpenedHere: boolean;
}

export interface CircuitBreakersOptions {
  readonly kv: Kv;
  readonly log: Log;
  /** Names this agent to others. */
  readonly name: string;
  /** Undefined: the endpoint has no breaker. */
  readonly policyOf: (endpoint: Endpoint) => BreakerPolicy | undefined;
  /** A breaker is in another state than before. */
  readonly onChange: (endpointId: string) => void;
  /** This agent has opened a breaker that was closed (`isFirst`), or whose probe has failed. */
  readonly onTrip?: (trip: Trip) => void;
  /** This agent has closed a breaker. */
  readonly onClose?: (endpoint: { readonly projectId: string; readonly endpointId: string }) => void;
}

/** A breaker that has opened. */
export interface Trip {
  readonly projectId: string;
  readonly endpointId: string;
  readonly isFirst: boolean;
  readonly failures: number;
  readonly error: string;
}

/**
 * The circuit breakers of endpoints, shared by all agents through KV.
 *
 * An endpoint that answers well has none, and costs a look into a map that is mostly empty. The first failure begins a count, in memory; once a second the counts of all
 * agents are put together. Whoever sees that too much has failed opens the breaker; the others learn of it within a second, or by their own failures. When its time is
 * over one request is let through in the whole instance; its outcome closes the breaker, or opens it for longer.
 *
 * While KV is away each agent goes by what it knows and counts itself, and tells the others when KV is back.
 */
export class CircuitBreakers {
  readonly #options: CircuitBreakersOptions;
  readonly #map: SharedMap;
  readonly #known = new Map<string, Known>();
  /** Breakers that are not closed. */
  #notClosed = 0;
  /** What the clock of KV shows, less the monotonic clock here. */
  #offsetMs = Date.now() - performance.now();
  #isAway = false;
  #timer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;
  #stopped = false;

  constructor(options: CircuitBreakersOptions) {
    this.#options = options;
    this.#map = options.kv.map('breakers');
    this.#schedule(0);
  }

  /** The state of all that are not closed, for those who look. */
  notClosed(): { readonly projectId: string; readonly endpointId: string; readonly state: 'open' | 'half_open' }[] {
    if (this.#notClosed === 0) return [];
    return [...this.#known].flatMap(([endpointId, { projectId, record }]) =>
      record && record.state !== 'closed' ? { projectId, endpointId, state: record.state } : [],
    );
  }

  /** What is let through to an endpoint; undefined: everything. */
  gate(endpointId: string): Gate | undefined {
    if (this.#notClosed === 0) return undefined;
    const record = this.#known.get(endpointId)?.record;
    if (!record || record.state === 'closed') return undefined;
    const inMs = record.until_ms - this.#nowMs();
    if (inMs <= 0) return { state: 'due' };
    return record.state === 'open'
      ? { state: 'open', inMs, openMs: (record.forget_ms - record.until_ms) / 2 }
      : { state: 'half_open', inMs };
  }

  /** Takes the outcome of a request that was no probe. */
  attempted(endpoint: Endpoint, isGood: boolean, error: string): void {
    let known = this.#known.get(endpoint.id);
    if (!known && isGood) return;
    const policy = this.#options.policyOf(endpoint);
    if (!policy) return;
    if (!known) this.#known.set(endpoint.id, (known = { ...NOTHING, projectId: endpoint.projectId, policy }));
    // What was under way when it opened tells nothing new.
    if (known.record && known.record.state !== 'closed') return;
    known.policy = policy;
    known.requests++;
    if (isGood) {
      // A window of good requests says nothing of what comes after it.
      if (known.failures === 0 && known.requests >= windowRequests(policy)) known.requests = 0;
      return;
    }
    known.failures++;
    known.error = error;
    if (known.isReporting) return;
    const { projectId, requests, failures } = known;
    const record = counted(known.record, { projectId, requests, failures }, policy, this.#nowMs());
    if (record.state === 'closed' && requests < windowRequests(policy)) return;
    // At once here, and then with the others.
    known.isOpenedHere = record.state === 'open';
    this.#put(endpoint.id, known, record);
    void this.#report(endpoint.id, known);
  }

  /** Asks to probe. True: send one request, and tell `probed` how it went. */
  async probe(endpoint: Endpoint): Promise<boolean> {
    const known = this.#known.get(endpoint.id);
    if (!known) return false;
    known.policy = this.#options.policyOf(endpoint) ?? known.policy;
    const leaseMs = endpoint.timeoutMs + PROBE_GRACE_MS;
    return this.#change(endpoint.id, known, (record) => record && probing(record, this.#options.name, leaseMs, this.#nowMs()));
  }

  /** Tells how the probe of this agent went. Without it somebody else probes when its time is over. */
  async probed(endpoint: Endpoint, isGood: boolean, error: string): Promise<void> {
    const known = this.#known.get(endpoint.id);
    const { policyOf, name, log, onTrip, onClose } = this.#options;
    if (!known) return;
    // Without a policy any more it is not opened again.
    const policy = policyOf(endpoint);
    const isMine = (record: BreakerRecord | undefined): record is BreakerRecord => record?.state === 'half_open' && record.by === name;
    const done = await this.#change(endpoint.id, known, (record) =>
      isMine(record) ? (isGood || !policy ? closed : opened)(record, policy ?? known.policy, this.#nowMs()) : undefined,
    );
    const { projectId, id: endpointId } = endpoint;
    if (!done) return;
    if (isGood) {
      log.info({ project_id: projectId, endpoint_id: endpointId }, 'The circuit breaker of an endpoint is closed: it answers well again.');
      onClose?.({ projectId, endpointId });
    } else onTrip?.({ projectId, endpointId, isFirst: false, failures: 1, error });
  }

  /** Ends; what is counted and not told is lost. */
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
      // With very many failing endpoints less often: each agent reads them all.
      this.#syncing = this.#sync().finally(() => this.#schedule(SYNC_MS + this.#known.size));
    }, inMs);
    this.#timer.unref();
  }

  async #sync(): Promise<void> {
    if (!(await this.#read())) return;
    const reports = [...this.#known].filter(([, { failures }]) => failures > 0);
    await Promise.all(reports.map(([endpointId, known]) => this.#report(endpointId, known)));
  }

  /** Reads what all agents know; false while KV is away. */
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
      const known = this.#known.get(endpointId);
      if (known && known.text === text) continue;
      this.#learn(endpointId, text);
    }
    await Promise.all([...this.#known].map(([endpointId, known]) => this.#mend(endpointId, known, answer.entries.get(endpointId))));
    return true;
  }

  #learn(endpointId: string, text: string): void {
    const record = JSON.parse(text) as BreakerRecord;
    let known = this.#known.get(endpointId);
    if (!known) this.#known.set(endpointId, (known = { ...NOTHING, projectId: record.project_id }));
    known.text = text;
    known.isUnsaved = false;
    this.#put(endpointId, known, record);
  }

  /** Brings what is known here and what stands in KV together, and forgets what says nothing any more. */
  async #mend(endpointId: string, known: Known, text: string | undefined): Promise<void> {
    if (known.isUnsaved) {
      // KV was away, or lost everything: it learns what was found out meanwhile.
      known.text = text;
      const { record } = known;
      await this.#change(endpointId, known, () => record);
      return;
    }
    if (text === undefined && known.text !== undefined) {
      known.text = undefined;
      this.#put(endpointId, known, undefined);
    }
    if (known.record && isSpent(known.record, this.#nowMs()) && known.failures === 0) await this.#change(endpointId, known, () => null);
    if (!known.record && known.failures === 0) this.#known.delete(endpointId);
  }

  /** Adds what was counted here to what all agents have counted. */
  async #report(endpointId: string, known: Known): Promise<void> {
    if (known.isReporting) return;
    known.isReporting = true;
    try {
      const { requests, failures, projectId, error } = known;
      let isTrip = false;
      let total = failures;
      const done = await this.#change(endpointId, known, (record, shared) => {
        // What was opened here is judged again with what the others have counted; while nobody can be asked it stays so.
        const isOpenHere = !shared && known.isOpenedHere && record !== undefined;
        const after = isOpenHere ? record : counted(record, { projectId, requests, failures }, known.policy, this.#nowMs());
        isTrip = after.state === 'open' && (isOpenHere || (record?.state ?? 'closed') === 'closed');
        total = after.failures;
        return after;
      });
      if (!done) return;
      known.requests -= requests;
      known.failures -= failures;
      if (!isTrip) return;
      const { log, onTrip } = this.#options;
      const seconds = Math.round(((known.record?.until_ms ?? 0) - this.#nowMs()) / 1000);
      log.warn(
        { project_id: projectId, endpoint_id: endpointId, requests: known.record?.requests, failures: total, seconds, last_error: error },
        'The circuit breaker of an endpoint is open: it fails, and nothing is sent to it for a while. Its deliveries wait, and none is lost.',
      );
      onTrip?.({ projectId, endpointId, isFirst: true, failures: total, error });
    } finally {
      known.isReporting = false;
      known.isOpenedHere = false;
    }
  }

  /**
   * Changes a record, here and for all agents.
   *
   * @param next makes the new record of the present one; null takes it out, undefined leaves it as it is. `shared` tells that the present one is as KV has it
   * @returns whether it was changed
   */
  async #change(
    endpointId: string,
    known: Known,
    next: (record: BreakerRecord | undefined, shared: boolean) => BreakerRecord | null | undefined,
  ): Promise<boolean> {
    for (let tries = 0; tries < TRIES && !this.#isAway; tries++) {
      const from = known.text;
      const to = next(from === undefined ? undefined : (JSON.parse(from) as BreakerRecord), true);
      if (to === undefined) return false;
      const text = to === null ? undefined : JSON.stringify(to);
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
        this.#put(endpointId, known, known.text === undefined ? undefined : (JSON.parse(known.text) as BreakerRecord));
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

  #put(endpointId: string, known: Known, record: BreakerRecord | undefined): void {
    const [before, after] = [known.record?.state ?? 'closed', record?.state ?? 'closed'];
    known.record = record;
    if (before === after) return;
    if (before === 'closed') this.#notClosed++;
    if (after === 'closed') this.#notClosed--;
    this.#options.onChange(endpointId);
  }
}

const NOTHING = {
  text: undefined,
  record: undefined,
  isUnsaved: false,
  requests: 0,
  failures: 0,
  error: '',
  policy: { threshold: 1, minimumRequests: Infinity, windowMs: 60_000, openMs: 30_000, openMaxMs: 600_000 },
  isReporting: false,
  isOpenedHere: false,
} satisfies Partial<Known>;
