import { settles, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import type * as OpenTelemetryApi from '@opentelemetry/api';
import type { SpanContext } from '@opentelemetry/api';
import { leavesNothingOpen } from './run/process.js';
import {
  always,
  eventually,
  everythingIn,
  must,
  mustNotTell,
  mustReject,
  type Rule,
} from './run/rule.js';
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
}

/** The contract's time limit for `close`, plus a margin for slow machines. */
const CLOSE_MS = 5_500;
const START_MS = 5_000;
const WARNINGS_MAX = 3;

/** The span context of a message that continues a trace. */
const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' } as const;

/** The context for testing a tracer rule. `close` closes its receivers and tracers. */
export class TracerBench extends Bench<TracerPlugin, TracerRig> {
  readonly #api = this.rig.api;

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
    const context: TracerContext = {
      serviceName: 'gateway-conformance',
      serviceVersion: '1.2.3',
      environment: 'conformance-tests',
      log: { debug: ignore, info: ignore, warn, error: warn },
    };
    const starting = Promise.resolve().then(() => this.plugin.start(settings, context));
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= starting.then((started) => started.close()));
    this.cleanup(close);
    must(await settles(starting, START_MS), `\`start\` has not settled after ${START_MS / 1000} s`);
    must(typeof (await starting)?.close === 'function', '`start` resolved without a `close`');
    return {
      warnings,
      close: async () => {
        must(await settles(close(), CLOSE_MS), '`close` has not settled after five seconds');
        await close();
      },
    };
  }

  /** Runs `work` with a new receiver and a new tracer, then closes the tracer. */
  async trace<Result>(work: () => Result | Promise<Result>) {
    const receiver = await this.open();
    const started = await this.start(receiver.settings);
    const result = await work();
    await started.close();
    return { receiver, result };
  }

  /**
   * Emits the `inner` span after an await, while the `outer` span is active.
   * @returns the span context of `outer`
   */
  nest(outer: string, inner: string): Promise<SpanContext> {
    const tracer = this.#api.trace.getTracer('conformance');
    return tracer.startActiveSpan(outer, async (span) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      this.emit(inner, this.#api.context.active());
      span.end();
      return span.spanContext();
    });
  }

  emit(name: string, context = this.#api.ROOT_CONTEXT): SpanContext {
    const tracer = this.#api.trace.getTracer('conformance');
    const span = tracer.startSpan(name, { attributes: { 'event.id': 'evt-1' } }, context);
    span.end();
    return span.spanContext();
  }

  /** Emits a span under the trace context of a message. */
  continue(name: string, { sampled }: { sampled: boolean }): SpanContext {
    const parent = { ...remote, traceFlags: sampled ? 1 : 0, isRemote: true };
    return this.emit(name, this.#api.trace.setSpanContext(this.#api.ROOT_CONTEXT, parent));
  }

  /** Waits for `count` distinct spans with this name, or it and a number, and returns the first. */
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
      'A span that has ended arrives with its name, ids and attributes, without waiting for `close`.',
    test: async (bench) => {
      const receiver = await bench.open();
      await bench.start(receiver.settings);
      const sent = bench.emit('alone');
      const came = await bench.arrived(receiver, 'alone');
      mustArrive('its trace id', sent.traceId, came.traceId);
      mustArrive('its span id', sent.spanId, came.spanId);
      mustArrive('event.id', 'evt-1', came.attributes['event.id']);
    },
  },
  'keeps-the-incoming-parent': {
    sentence: 'A span under the trace context of a message has that trace id and that parent.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() => bench.continue('continued', { sampled: true }));
      const { traceId, parentSpanId = 'none' } = await bench.arrived(receiver, 'continued');
      mustArrive('the trace id of the message', remote.traceId, traceId);
      mustArrive('the parent in the message', remote.spanId, parentSpanId);
    },
  },
  'keeps-a-senders-no': {
    sentence: 'A trace that its sender does not sample is not sent.',
    needs: ['keeps-the-incoming-parent'],
    test: async (bench) => {
      const { receiver } = await bench.trace(() => bench.continue('unwanted', { sampled: false }));
      await always(async () => {
        const spans = await receiver.spans();
        return spans.some(({ name }) => name === 'unwanted') && 'the span "unwanted" has arrived';
      }, bench.quietMs);
    },
  },
  'starts-again': {
    sentence:
      'After `close` it can be started again, and a span that is started while another is active is its child, also behind an await.',
    test: async (bench) => {
      await bench.trace(() => {});
      const { receiver, result: outer } = await bench.trace(() => bench.nest('outer', 'inner'));
      const { traceId, parentSpanId = 'none' } = await bench.arrived(receiver, 'inner');
      mustArrive('the trace id of the outer span', outer.traceId, traceId);
      mustArrive('the parent of the inner span', outer.spanId, parentSpanId);
    },
  },
  'flushes-at-close': {
    sentence:
      'Spans that ended right before `close`, hundreds of them, have arrived when it has resolved.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() => {
        for (let at = 0; at < 300; at++) bench.emit(`last ${at}`);
      });
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
        'another provider was registered, and `start` resolved; one of the two receives no spans',
      );
      must(
        'mine' in trace.getTracer('another').startSpan('any'),
        'another provider was registered, and `start` replaced it',
      );
    },
  },
  'refuses-wrong-settings': {
    sentence: 'When settings are wrong, `start` rejects with a `PluginError` and tells no secret.',
    skip: ({ wrong }) => (wrong === undefined ? 'the rig has no `wrong`' : undefined),
    test: async (bench) => {
      const { settings, secrets = [] } = bench.rig.wrong!;
      const error = await mustReject(
        bench.start(settings),
        '`start`',
        'the settings are wrong, and `start` resolved',
      );
      mustNotTell(secrets, everythingIn(error), 'the error of `start`');
    },
  },
  'tells-when-spans-are-lost': {
    sentence:
      'When the back end is away, `close` takes at most five seconds, and the log gets a warning, not one for every span.',
    skip: ({ away }) => (away === undefined ? 'the rig has no `away`' : undefined),
    test: async (bench) => {
      const { warnings, close } = await bench.start(bench.rig.away!);
      for (let at = 0; at < 50; at++) bench.emit(`lost ${at}`);
      await close();
      must(
        warnings.length > 0 && warnings.length <= WARNINGS_MAX,
        `50 spans were lost, and the log has ${warnings.length} warnings: ${warnings.slice(0, 3).join(' · ')}`,
      );
    },
  },
  'closes-what-it-opened': {
    sentence: 'When `close` has resolved, nothing that the tracer opened keeps the process alive.',
    needs: ['starts-again'],
    test: (bench) =>
      leavesNothingOpen(
        async () => void (await bench.trace(() => bench.emit('once'))),
        bench.withinMs,
      ),
  },
};
