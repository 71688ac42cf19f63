import { settles } from '@gateway/plugin';
import type { TracerContext, TracerPlugin } from '@gateway/plugin';
import { must, type Rule, type Watched } from '../run/judge.js';
import type { ApiContext, OpenTelemetryApi, ReceivedSpan, Receiver, TracerRig } from './rig.js';
import { always, eventually } from '../run/wait.js';

/** What every rule of a tracer has at hand. */
export type TracerBench = Watched<TracerPlugin, TracerRig>;

/** The bench for one rule: what the rule starts here is closed after it, whether it holds or not. */
export interface Stage extends TracerBench {
  readonly api: OpenTelemetryApi;
  open(): Promise<Receiver>;
  start(settings: Record<string, unknown>): Promise<Started>;
  /** Waits for a span of this name. */
  arrived(receiver: Receiver, name: string): Promise<ReceivedSpan>;
  /** Sees for a while that no span of this name comes. */
  stayedAway(receiver: Receiver, name: string): Promise<void>;
  /** Whether spans that are started now go anywhere. */
  records(): boolean;
}

/** A tracer at work. */
export interface Started {
  /** Closes it. @throws `Broken` when that takes longer than the contract gives it */
  close(): Promise<void>;
  /** What its log was warned of. */
  readonly warnings: readonly string[];
}

export interface TracerRule extends Omit<Rule<TracerBench>, 'judge'> {
  judge(stage: Stage): Promise<void>;
}

/** The contract's bound for `close`, with a little for the machine. */
const CLOSE_MS = 5_500;
const START_MS = 5_000;

export const about: Pick<TracerContext, 'serviceName' | 'serviceVersion' | 'environment'> = {
  serviceName: 'gateway-conformance',
  serviceVersion: '1.2.3',
  environment: 'conformance-tests',
};

/** The context of a trace that began elsewhere. */
export const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' } as const;

export function under(api: OpenTelemetryApi, decision: 'sampled' | 'not sampled'): ApiContext {
  return api.trace.setSpanContext(api.ROOT_CONTEXT, { ...remote, traceFlags: decision === 'sampled' ? 1 : 0, isRemote: true });
}

/** The rule as the judge knows rules. A process has one tracer, so each runs alone. */
export function onStage(rule: TracerRule): Rule<TracerBench> {
  return {
    ...rule,
    alone: true,
    judge: async (bench) => {
      const endings: (() => Promise<unknown>)[] = [];
      try {
        await rule.judge(stageOf(bench, endings));
      } finally {
        for (const end of endings.reverse()) await settles(Promise.resolve().then(end), CLOSE_MS);
        bench.rig.api.trace.disable();
      }
    },
  };
}

function stageOf(bench: TracerBench, endings: (() => Promise<unknown>)[]): Stage {
  const { plugin, rig, withinMs, quietMs } = bench;
  const find = async (receiver: Receiver, name: string) => (await receiver.spans()).find((span) => span.name === name);
  return {
    ...bench,
    api: rig.api,
    open: async () => {
      const receiver = await rig.open();
      endings.push(() => receiver.close());
      return receiver;
    },
    start: async (settings) => {
      const warnings: string[] = [];
      const nothing = () => {};
      const warned = (fields: object, sentence: string) => void warnings.push(`${JSON.stringify(fields)} ${sentence}`);
      const starting = Promise.resolve().then(() =>
        plugin.start(settings, { ...about, log: { debug: nothing, info: nothing, warn: warned, error: warned } }),
      );
      must(await settles(starting, START_MS), `\`start\` has not settled after ${START_MS / 1000} s`);
      const started = await starting;
      must(typeof started?.close === 'function', '`start` resolved with nothing to close');
      let closing: Promise<void> | undefined;
      const close = () => (closing ??= Promise.resolve().then(() => started.close()));
      endings.push(close);
      return {
        warnings,
        close: async () => {
          must(await settles(close(), CLOSE_MS), '`close` has not settled after five seconds');
          await close();
        },
      };
    },
    arrived: async (receiver, name) => {
      await eventually(async () => (await find(receiver, name)) !== undefined, {
        withinMs,
        reason: () => `the span "${name}" has not arrived`,
      });
      return (await find(receiver, name)) as ReceivedSpan;
    },
    stayedAway: (receiver, name) =>
      always(async () => (await find(receiver, name)) === undefined, { forMs: quietMs, reason: () => `the span "${name}" has arrived` }),
    records: () => {
      const span = rig.api.trace.getTracer('conformance').startSpan('probe', {}, under(rig.api, 'sampled'));
      span.end();
      return span.isRecording() || span.spanContext().spanId !== remote.spanId;
    },
  };
}

/** Starts and ends a span. */
export function emit(api: OpenTelemetryApi, name: string, context?: ApiContext): { traceId: string; spanId: string } {
  const span = api.trace.getTracer('conformance').startSpan(name, { attributes: { 'event.id': 'evt-1' } }, context ?? api.ROOT_CONTEXT);
  span.end();
  return span.spanContext();
}
