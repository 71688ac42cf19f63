// Every attempt and every resend must send the same bytes, so the first output stays with the
// delivery. It is a column there, null without a function: a table beside it would need a look-up
// in each claim, and partitions and retention of its own. The agent caches versions of functions
// and reads their texts when needed, because all texts of a project can exceed its configuration.
import { createHash } from 'node:crypto';
import { messageArgument, type TemplateMessage } from '@gateway/core/events';
import { readFunction } from '@gateway/store/config';
import { DISCARD_REASONS } from '@gateway/store/deliveries';
import { findMessageOfEvent } from '@gateway/store/events';
import {
  type Sandbox,
  takesMessage,
  type TransformFunction,
  type TransformResult,
} from '@gateway/sandbox';
import type { AgentContext } from '../config/agent-context.js';
import type { InFlightDelivery } from '../model/delivery.js';
import { isOverrun } from '@gateway/ingest/transform/overruns';
import { transformedData } from '@gateway/ingest/transform/transformed-data';

type FunctionOutcome =
  | { readonly kind: 'made'; readonly data: string }
  /** The subscription has no function. */
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'dropped'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly durationMs: number }
  /** The function has no result yet, so the delivery is retried later. */
  | { readonly kind: 'postponed' };

interface SubscriptionFunctionsOptions extends Pick<
  AgentContext,
  'configCache' | 'database' | 'log' | 'shard'
> {
  readonly sandbox: Pick<Sandbox, 'run' | 'cancel'>;
}

interface NamedFunction extends TransformFunction {
  readonly takesMessage: boolean;
  readonly subscription: string;
}

/** Each of up to 50,000 characters. */
const KEPT_MAX = 200;
/**
 * For a disabled or deleted subscription, which the config cache omits without reporting its
 * changes.
 */
const INACTIVE_MS = 5_000;
const WARN_MS = 10_000;

/**
 * Deliveries of a disabled or deleted subscription still need its function, because they must not
 * be sent unchanged.
 */
export class SubscriptionFunctions {
  /** By subscription and version, in LRU order. */
  readonly #functions = new Map<string, Promise<NamedFunction | null>>();
  readonly #running = new Map<string, number>();
  #stopped = false;
  #warnedAtMs = -Infinity;

  constructor(private readonly options: SubscriptionFunctionsOptions) {}

  /** The delivery must go through `run` before it is sent. */
  mayChange({ projectId, subscriptionId, isTransformed }: InFlightDelivery): boolean {
    return (
      subscriptionId !== null &&
      !isTransformed &&
      this.options.configCache.functionVersion(projectId, subscriptionId) !== null
    );
  }

  /** Never rejects: an unexpected error postpones the delivery. */
  async run(delivery: InFlightDelivery): Promise<FunctionOutcome> {
    let fn: NamedFunction | null | undefined;
    try {
      fn = await this.#functionOf(delivery);
      if (!fn) return { kind: 'unchanged' };
      if (this.#stopped) return { kind: 'postponed' };
      return this.#outcome(fn, await this.#call(fn, delivery));
    } catch (error) {
      if (!this.#stopped) this.#warn(error, fn);
      return { kind: 'postponed' };
    }
  }

  /** Running and all later calls return `postponed`. */
  stop(): void {
    this.#stopped = true;
    for (const key of this.#running.keys()) this.options.sandbox.cancel(key);
  }

  async #call(fn: NamedFunction, delivery: InFlightDelivery): Promise<TransformResult> {
    const { key } = fn;
    const messages = fn.takesMessage ? [await this.#argument(delivery)] : undefined;
    if (this.#stopped) throw new Error('stopped');
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    try {
      const [result] = await this.options.sandbox.run(
        fn,
        [delivery.body.toString()],
        undefined,
        messages,
      );
      return result!;
    } finally {
      const left = this.#running.get(key)! - 1;
      if (left > 0) this.#running.set(key, left);
      else this.#running.delete(key);
    }
  }

  async #argument(delivery: InFlightDelivery): Promise<string> {
    const { message, headers } = await this.#read(delivery);
    return messageArgument(message, headers);
  }

  async messageOf(delivery: InFlightDelivery): Promise<TemplateMessage> {
    const { message, headers } = await this.#read(delivery);
    return { ...message, headers };
  }

  /** Deliveries do not have it in memory: it is read for functions and headers that take it. */
  async #read({ projectId, eventId }: InFlightDelivery) {
    const { pool } = this.options.shard.database;
    const found = await findMessageOfEvent(pool, projectId, eventId);
    const headers = JSON.parse(found?.headers ?? '{}') as Record<string, string>;
    return { message: found?.message ?? undefined, headers };
  }

  #outcome({ key, subscription }: NamedFunction, result: TransformResult): FunctionOutcome {
    // If the function timed out, ran out of memory or crashed, its waiting calls are cancelled,
    // because their deliveries would block requests to other endpoints.
    if (isOverrun(result)) this.options.sandbox.cancel(key, 'waiting');
    // The machine was too busy and the function may not be at fault, so the delivery is postponed.
    if (result.kind === 'refused' && result.starved) return { kind: 'postponed' };
    const made = transformedData(result);
    switch (made.kind) {
      case 'made':
        return made;
      case 'dropped':
        return {
          kind: 'dropped',
          reason: `${DISCARD_REASONS.function}${subscription} returned null: nothing is sent.`,
        };
      case 'failed':
        return {
          kind: 'failed',
          reason: `The function of the subscription ${subscription} failed. ${made.reason}`,
          durationMs: result.durationMs,
        };
    }
  }

  #functionOf({ projectId, subscriptionId }: InFlightDelivery): Promise<NamedFunction | null> {
    const id = subscriptionId!;
    const version = this.options.configCache.functionVersion(projectId, id);
    const place = `${id} ${version ?? ''}`;
    const known = this.#functions.get(place);
    this.#functions.delete(place);
    const found = known ?? this.#readFunction(projectId, id);
    this.#functions.set(place, found);
    if (known) return known;
    const forget = () => {
      if (this.#functions.get(place) === found) this.#functions.delete(place);
    };
    if (version === undefined) setTimeout(forget, INACTIVE_MS).unref();
    found.catch(forget);
    if (this.#functions.size > KEPT_MAX)
      this.#functions.delete(this.#functions.keys().next().value!);
    return found;
  }

  async #readFunction(projectId: string, id: string): Promise<NamedFunction | null> {
    const found = await readFunction(this.options.database.pool, projectId, id);
    if (!found) return null;
    const { name, text } = found;
    const digest = createHash('sha256').update(text).digest('base64url');
    return {
      key: `${id}:${digest}`,
      text,
      takesMessage: takesMessage(text),
      project: projectId,
      subscription: `${JSON.stringify(name)} (${id})`,
    };
  }

  #warn(error: unknown, fn: NamedFunction | null | undefined): void {
    const nowMs = performance.now();
    if (nowMs - this.#warnedAtMs < WARN_MS) return;
    this.#warnedAtMs = nowMs;
    this.options.log.warn(
      { error, project_id: fn?.project },
      'Could not run subscription functions because one overran or no process is available; their deliveries wait.',
    );
  }
}
