import { settles, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import type { Context, SpanContext } from '@opentelemetry/api';
import { always, eventually, must, type Rule } from '../run/rule.js';
import { Bench } from '../run/run-rules.js';
import type { ReceivedSpan, Receiver, TracerRig } from './rig.js';

export type TracerRule = Rule<TracerRig, TracerBench>;

/** A started tracer. */
export interface Started {
  /** @throws `Broken` when it takes longer than the contract allows */
  close(): Promise<void>;
  /** Lines of its log at `warn` and above. */
  readonly warnings: readonly string[];
}

/** The contract's limit for `close`, and a little more for a slow machine. */
const CLOSE_MS = 5_500;
const START_MS = 5_000;

export const about: Pick<TracerContext, 'serviceName' | 'serviceVersion' | 'environment'> = {
  serviceName: 'gateway-conformance',
  serviceVersion: '1.2.3',
  environment: 'conformance-tests',
};

/** The span context of a message that continues a trace. */
export const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' } as const;

/** What a rule of a tracer works with. */
export class TracerBench extends Bench<TracerPlugin, TracerRig> {
  readonly api = this.rig.api;
  readonly #cleanups: (() => Promise<unknown>)[] = [];

  async open(): Promise<Receiver> {
    const receiver = await this.rig.open();
    this.#cleanups.push(() => receiver.close());
    return receiver;
  }

  async start(settings: Record<string, unknown>): Promise<Started> {
    const warnings: string[] = [];
    const ignore = () => {};
    const warn = (fields: object, sentence: string) => void warnings.push(`${JSON.stringify(fields)} ${sentence}`);
    const starting = Promise.resolve().then(() =>
      this.plugin.start(settings, { ...about, log: { debug: ignore, info: ignore, warn, error: warn } }),
    );
    must(await settles(starting, START_MS), `\`start\` has not settled after ${START_MS / 1000} s`);
    const started = await starting;
    must(typeof started?.close === 'function', '`start` resolved without a `close`');
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= Promise.resolve().then(() => started.close()));
    this.#cleanups.push(close);
    return {
      warnings,
      close: async () => {
        must(await settles(close(), CLOSE_MS), '`close` has not settled after five seconds');
        await close();
      },
    };
  }

  /** Starts the tracer on a new receiver, does the work, and closes the tracer. */
  async trace<Result>(
    work: () => Result | Promise<Result>,
    settingsOf = ({ settings }: Receiver) => settings,
  ): Promise<{ receiver: Receiver; result: Result }> {
    const receiver = await this.open();
    const started = await this.start(settingsOf(receiver));
    const result = await work();
    await started.close();
    return { receiver, result };
  }

  /** Emits a span, `inner`, while another, `outer`, is active, behind an await. @returns the context of `outer` */
  nest(outer: string, inner: string): Promise<SpanContext> {
    return this.api.trace.getTracer('conformance').startActiveSpan(outer, async (span) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      this.emit(inner, this.api.context.active());
      span.end();
      return span.spanContext();
    });
  }

  /** Starts and ends a span. */
  emit(name: string, context = this.api.ROOT_CONTEXT): SpanContext {
    const span = this.api.trace.getTracer('conformance').startSpan(name, { attributes: { 'event.id': 'evt-1' } }, context);
    span.end();
    return span.spanContext();
  }

  /** Starts and ends `<name> 0`, `<name> 1`, … */
  emitMany(count: number, name: string): void {
    for (let at = 0; at < count; at++) this.emit(`${name} ${at}`);
  }

  /** The context of a trace that began elsewhere. */
  remote(decision: 'sampled' | 'not sampled'): Context {
    const span = { ...remote, traceFlags: decision === 'sampled' ? 1 : 0, isRemote: true };
    return this.api.trace.setSpanContext(this.api.ROOT_CONTEXT, span);
  }

  /** Waits for a span of this name. */
  async arrived(receiver: Receiver, name: string): Promise<ReceivedSpan> {
    let found: ReceivedSpan | undefined;
    await eventually(async () => !(found = await find(receiver, name)) && `the span "${name}" has not arrived`, this.withinMs);
    return found!;
  }

  async allArrived(receiver: Receiver, count: number, name: string): Promise<void> {
    for (let at = 0; at < count; at++) await this.arrived(receiver, `${name} ${at}`);
  }

  /** Watches for a while that no span of this name arrives. */
  stayedAway(receiver: Receiver, name: string): Promise<void> {
    return always(async () => (await find(receiver, name)) && `the span "${name}" has arrived`, this.quietMs);
  }

  /** Whether spans that are started now are recorded. */
  records(): boolean {
    const span = this.api.trace.getTracer('conformance').startSpan('probe', {}, this.remote('sampled'));
    span.end();
    return span.isRecording() || span.spanContext().spanId !== remote.spanId;
  }

  /** Closes every tracer and receiver, newest first. */
  override async close(): Promise<void> {
    for (const cleanup of this.#cleanups.reverse()) await settles(Promise.resolve().then(cleanup), CLOSE_MS);
    this.api.trace.disable();
  }
}

async function find(receiver: Receiver, name: string): Promise<ReceivedSpan | undefined> {
  return (await receiver.spans()).find((span) => span.name === name);
}
