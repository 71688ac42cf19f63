import { settles, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import type * as OpenTelemetryApi from '@opentelemetry/api';
import type { SpanContext } from '@opentelemetry/api';
import { leavesNothingOpen } from './run/process.js';
import { eventually, must, mustReject, type Rule } from './run/rule.js';
import { Bench } from './run/run-rules.js';

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
}

/** The contract's time limit for `close`, plus a margin for slow machines. */
const CLOSE_MS = 5_500;
const START_MS = 5_000;

/** The trace context of a message. */
const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' } as const;

export class TracerBench extends Bench<TracerPlugin, TracerRig> {
  readonly #api = this.rig.api;

  async open(): Promise<Receiver> {
    const receiver = await this.rig.open();
    this.cleanup(() => receiver.close());
    return receiver;
  }

  async start(settings: Record<string, unknown>): Promise<{ close(): Promise<void> }> {
    const none = () => {};
    const context: TracerContext = {
      serviceName: 'gateway-conformance',
      serviceVersion: '1.2.3',
      environment: 'conformance-tests',
      log: { debug: none, info: none, warn: none, error: none },
    };
    const starting = Promise.resolve().then(() => this.plugin.start(settings, context));
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= starting.then((started) => started.close()));
    this.cleanup(close);
    must(await settles(starting, START_MS), `\`start\` has not settled after ${START_MS / 1000} s`);
    must(typeof (await starting)?.close === 'function', '`start` resolved without a `close`');
    return {
      close: async () => {
        must(await settles(close(), CLOSE_MS), '`close` has not settled after five seconds');
        await close();
      },
    };
  }

  /** Emits a span under the trace context of a message. */
  emit(name: string): SpanContext {
    const { trace, ROOT_CONTEXT } = this.#api;
    const context = trace.setSpanContext(ROOT_CONTEXT, {
      ...remote,
      traceFlags: 1,
      isRemote: true,
    });
    const options = { attributes: { 'event.id': 'evt-1' } };
    const span = trace.getTracer('conformance').startSpan(name, options, context);
    span.end();
    return span.spanContext();
  }

  /** Distinct spans with this name, or it and a number. */
  async arrived(receiver: Receiver, name: string, count = 1): Promise<ReceivedSpan> {
    const spans = new Map<string, ReceivedSpan>();
    await eventually(async () => {
      for (const span of await receiver.spans())
        if (span.name === name || span.name.startsWith(`${name} `)) spans.set(span.spanId, span);
      return spans.size < count && `${spans.size} of ${count} spans "${name}" have arrived`;
    }, this.withinMs);
    return [...spans.values()][0]!;
  }

  override async close(): Promise<void> {
    await super.close();
    this.#api.trace.disable();
  }
}

function mustArrive(what: string, sent: string, came: unknown): void {
  must(came === sent, `${what} is ${sent}, and ${String(came)} arrived`);
}

export const tracerRules: Readonly<Record<string, Rule<TracerRig, TracerBench>>> = {
  'sends-spans': {
    sentence:
      'A span that has ended arrives with its name, ids and attributes, in the trace and under the parent that came with its message; hundreds that ended right before `close` have arrived when it has resolved.',
    test: async (bench) => {
      const receiver = await bench.open();
      const started = await bench.start(receiver.settings);
      const sent = bench.emit('alone');
      const came = await bench.arrived(receiver, 'alone');
      mustArrive('the trace id of the message', remote.traceId, came.traceId);
      mustArrive('the parent in the message', remote.spanId, came.parentSpanId);
      mustArrive('its span id', sent.spanId, came.spanId);
      mustArrive('event.id', 'evt-1', came.attributes['event.id']);
      for (let at = 0; at < 300; at++) bench.emit(`last ${at}`);
      await started.close();
      await bench.arrived(receiver, 'last', 300);
    },
  },
  'refuses-a-second-tracer': {
    sentence:
      'When another provider is registered, `start` rejects with a `PluginError` and leaves that provider registered.',
    test: async (bench) => {
      const { trace, INVALID_SPAN_CONTEXT } = bench.rig.api;
      const receiver = await bench.open();
      const span = Object.assign(trace.wrapSpanContext(INVALID_SPAN_CONTEXT), { mine: true });
      const tracer = { startSpan: () => span, startActiveSpan: () => undefined as never };
      trace.disable();
      trace.setGlobalTracerProvider({ getTracer: () => tracer });
      await mustReject(
        bench.start(receiver.settings),
        '`start`',
        'resolved though another provider was registered; one of the two receives no spans',
      );
      must(
        'mine' in trace.getTracer('another').startSpan('any'),
        'another provider was registered, and `start` replaced it',
      );
    },
  },
  'closes-what-it-opened': {
    sentence:
      'After `close` it can be started again, and nothing that it opened keeps the process alive.',
    test: (bench) =>
      leavesNothingOpen(async () => {
        const { settings } = await bench.open();
        const started = await bench.start(settings);
        bench.emit('once');
        await started.close();
      }, bench.withinMs),
  },
};
