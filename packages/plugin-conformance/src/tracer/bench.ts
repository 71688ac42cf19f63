import { settles, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import type * as OpenTelemetryApi from '@opentelemetry/api';
import type { Context, SpanContext } from '@opentelemetry/api';
import { always, eventually, must, type Rule } from '../run/rule.js';
import { Bench } from '../run/run-rules.js';

export type TracerRule = Rule<TracerRig, TracerBench>;

/** The contract's time limit for `close`, plus a margin for slow machines. */
const CLOSE_MS = 5_500;
const START_MS = 5_000;

export const about: Pick<TracerContext, 'serviceName' | 'serviceVersion' | 'environment'> = {
  serviceName: 'gateway-conformance',
  serviceVersion: '1.2.3',
  environment: 'conformance-tests',
};

/** The span context of a message that continues a trace. */
export const remote = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
} as const;

/** The context for testing a tracer rule. `close` closes its receivers and tracers. */
export class TracerBench extends Bench<TracerPlugin, TracerRig> {
  readonly api = this.rig.api;

  async open(): Promise<Receiver> {
    const receiver = await this.rig.open();
    this.cleanup(() => receiver.close());
    return receiver;
  }

  /** Starts the tracer. `warnings` are its log lines at level `warn` and above. */
  async start(settings: Record<string, unknown>) {
    const warnings: string[] = [];
    const ignore = () => {};
    const warn = (fields: object, sentence: string) =>
      void warnings.push(`${JSON.stringify(fields)} ${sentence}`);
    const starting = Promise.resolve().then(() =>
      this.plugin.start(settings, {
        ...about,
        log: { debug: ignore, info: ignore, warn, error: warn },
      }),
    );
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= starting.then((started) => started.close()));
    this.cleanup(close);
    must(await settles(starting, START_MS), `\`start\` has not settled after ${START_MS / 1000} s`);
    const started = await starting;
    must(typeof started?.close === 'function', '`start` resolved without a `close`');
    return {
      warnings,
      close: async () => {
        must(await settles(close(), CLOSE_MS), '`close` has not settled after five seconds');
        await close();
      },
    };
  }

  /** Runs `work` with a new receiver and a new tracer, then closes the tracer. */
  async trace<Result>(
    work: () => Result | Promise<Result>,
    settingsOf = ({ settings }: Receiver) => settings,
  ) {
    const receiver = await this.open();
    const started = await this.start(settingsOf(receiver));
    const result = await work();
    await started.close();
    return { receiver, result };
  }

  /**
   * Emits the `inner` span after an await, while the `outer` span is active.
   * @returns the span context of `outer`
   */
  nest(outer: string, inner: string): Promise<SpanContext> {
    return this.api.trace.getTracer('conformance').startActiveSpan(outer, async (span) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      this.emit(inner, this.api.context.active());
      span.end();
      return span.spanContext();
    });
  }

  emit(name: string, context = this.api.ROOT_CONTEXT): SpanContext {
    const span = this.api.trace
      .getTracer('conformance')
      .startSpan(name, { attributes: { 'event.id': 'evt-1' } }, context);
    span.end();
    return span.spanContext();
  }

  emitMany(count: number, name: string): void {
    for (let at = 0; at < count; at++) this.emit(`${name} ${at}`);
  }

  remote(decision: 'sampled' | 'not sampled'): Context {
    const span = { ...remote, traceFlags: decision === 'sampled' ? 1 : 0, isRemote: true };
    return this.api.trace.setSpanContext(this.api.ROOT_CONTEXT, span);
  }

  /**
   * Waits for `count` distinct spans with this name, optionally followed by a space and a suffix,
   * and returns the first.
   */
  async arrived(receiver: Receiver, name: string, count = 1): Promise<ReceivedSpan> {
    const spans = new Map<string, ReceivedSpan>();
    await eventually(async () => {
      for (const span of await receiver.spans())
        if (isNamed(span, name)) spans.set(span.spanId, span);
      return spans.size < count && `${spans.size} of ${count} spans "${name}" have arrived`;
    }, this.withinMs);
    return [...spans.values()][0]!;
  }

  stayedAway(receiver: Receiver, name: string): Promise<void> {
    const hasArrived = async () => (await receiver.spans()).some((span) => isNamed(span, name));
    return always(
      async () => (await hasArrived()) && `the span "${name}" has arrived`,
      this.quietMs,
    );
  }

  records(): boolean {
    const span = this.api.trace
      .getTracer('conformance')
      .startSpan('probe', {}, this.remote('sampled'));
    span.end();
    return span.isRecording() || span.spanContext().spanId !== remote.spanId;
  }

  override async close(): Promise<void> {
    await super.close();
    this.api.trace.disable();
  }
}

function isNamed(span: ReceivedSpan, name: string): boolean {
  return span.name === name || span.name.startsWith(`${name} `);
}

/** The rig for testing a tracer. */
export interface TracerRig<Settings = Record<string, unknown>> {
  /**
   * The plugin's copy of the OpenTelemetry API, from `import * as api from '@opentelemetry/api'`.
   */
  readonly api: typeof OpenTelemetryApi;
  /**
   * Starts a backend, and returns settings that make the tracer send to it and sample every trace.
   */
  open(): Promise<Receiver<Settings>>;
  /** Returns the settings with this sample rate. Omit it if the plugin cannot sample. */
  sampled?(settings: Settings, rate: 0 | 1): Settings;
  /**
   * Why the plugin sends traces that their sender does not sample. Set it if the vendor requires
   * this; the rule against it is then skipped.
   */
  readonly ignoresASendersNo?: string;
  /** Settings for a backend that does not listen. */
  readonly away?: Settings;
  /** Settings that `start` must reject, and the secrets in them. */
  readonly wrong?: { readonly settings: Settings; readonly secrets?: readonly string[] };
  close?(): Promise<void>;
}

export interface Receiver<Settings = Record<string, unknown>> {
  readonly settings: Settings;
  spans(): readonly ReceivedSpan[] | Promise<readonly ReceivedSpan[]>;
  close(): Promise<void>;
}

export interface ReceivedSpan {
  readonly name: string;
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentSpanId?: string;
  /** The attributes as stored by the backend. */
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Information about the process, if the protocol transmits it. */
  readonly service?: {
    readonly name?: string;
    readonly version?: string;
    readonly environment?: string;
  };
}
