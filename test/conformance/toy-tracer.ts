import { AsyncLocalStorage } from 'node:async_hooks';
import crypto from 'node:crypto';
import * as api from '@opentelemetry/api';
import {
  PluginError,
  refuseSecondTracer,
  type PluginLog,
  type TracerPlugin,
} from '@gateway/plugin';
import type { ReceivedSpan, TracerRig } from '@gateway/plugin-conformance';

interface Settings extends Record<string, unknown> {
  readonly place: string;
  readonly rate: number;
  readonly key?: string;
}

/** Sent spans by place. Other places do not listen. */
const places = new Map<string, ReceivedSpan[]>();

/** The replaceable parts of an in-memory tracer. */
export interface Parts {
  /** Throws for invalid settings or circumstances. */
  admit(settings: Settings): void;
  samples(parent: api.SpanContext | undefined, rate: number): boolean;
  parent(parent: api.SpanContext | undefined): api.SpanContext | undefined;
  contexts: boolean;
  sends(span: ReceivedSpan, place: ReceivedSpan[]): void;
  lost(log: PluginLog | undefined): void;
  started(): void;
  close(flush: () => void, settings: Settings): Promise<void>;
}

export const sound: Parts = {
  admit: ({ place, key = '' }) => {
    if (!place.startsWith('memory:'))
      throw new PluginError('tracer.toy.place is no place.', { fix: 'Let it begin with memory:.' });
    void key;
    refuseSecondTracer();
  },
  samples: (parent, rate) =>
    parent ? (parent.traceFlags & api.TraceFlags.SAMPLED) === 1 : rate === 1,
  parent: (parent) => parent,
  contexts: true,
  sends: (span, place) => void place.push(span),
  lost: (log) => log?.warn({}, 'spans are lost'),
  started: () => {},
  close: (flush) => {
    flush();
    api.trace.disable();
    api.context.disable();
    return Promise.resolve();
  },
};

/** A correct tracer, except for these parts. */
export function toyTracer(otherwise: Partial<Parts> = {}): TracerPlugin<Settings> {
  const parts = { ...sound, ...otherwise };
  return {
    start: (settings, { log }) => {
      parts.admit(settings);
      parts.started();
      const waiting: ReceivedSpan[] = [];
      const flush = () => {
        const place = places.get(settings.place);
        if (!place && waiting.length > 0) parts.lost(log);
        for (const span of waiting.splice(0)) if (place) parts.sends(span, place);
      };
      const sending = setInterval(flush, 50);
      if (parts.contexts) api.context.setGlobalContextManager(contextManager());
      api.trace.setGlobalTracerProvider(
        provider(parts, settings.rate, (span) => void waiting.push(span)),
      );
      return Promise.resolve({
        close: async () => {
          clearInterval(sending);
          await parts.close(flush, settings);
        },
      });
    },
  };
}

function provider(
  parts: Parts,
  rate: number,
  ended: (span: ReceivedSpan) => void,
): api.TracerProvider {
  const startSpan = (
    name: string,
    { attributes = {} }: api.SpanOptions = {},
    context = api.context.active(),
  ): api.Span => {
    const parent = parts.parent(api.trace.getSpanContext(context));
    const sampled = parts.samples(parent, rate);
    const spanId = crypto.randomBytes(8).toString('hex');
    const traceId = parent?.traceId ?? crypto.randomBytes(16).toString('hex');
    const span = api.trace.wrapSpanContext({ traceId, spanId, traceFlags: sampled ? 1 : 0 });
    const parentSpanId = parent && { parentSpanId: parent.spanId };
    return Object.assign(span, {
      isRecording: () => sampled,
      end: () =>
        void (
          sampled &&
          ended({
            name,
            traceId,
            spanId,
            ...parentSpanId,
            attributes,
          })
        ),
    });
  };
  const startActiveSpan = (name: string, ...rest: unknown[]) => {
    const span = startSpan(name);
    const work = rest.at(-1) as (span: api.Span) => unknown;
    return api.context.with(api.trace.setSpan(api.context.active(), span), () => work(span));
  };
  return { getTracer: () => ({ startSpan, startActiveSpan: startActiveSpan }) };
}

function contextManager(): api.ContextManager {
  const storage = new AsyncLocalStorage<api.Context>();
  const manager: api.ContextManager = {
    active: () => storage.getStore() ?? api.ROOT_CONTEXT,
    with: (context, work, self, ...args) =>
      storage.run(context, () => work.apply(self as ThisParameterType<typeof work>, args)),
    bind: (_context, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

/** A rig with all optional parts. */
export const toyTracerRig: TracerRig<Settings> = {
  api,
  open: () => {
    const place = `memory:${crypto.randomUUID()}`;
    const spans: ReceivedSpan[] = [];
    places.set(place, spans);
    return Promise.resolve({
      settings: { place, rate: 1 },
      spans: () => spans,
      close: () => Promise.resolve(),
    });
  },
  away: { place: 'memory:away', rate: 1 },
  wrong: { settings: { place: 'nowhere', rate: 1, key: 'the-toy-key' }, secrets: ['the-toy-key'] },
};
