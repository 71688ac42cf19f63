import crypto from 'node:crypto';
import * as api from '@opentelemetry/api';
import { refuseSecondTracer, type TracerPlugin } from '@gateway/plugin';
import type { ReceivedSpan, TracerRig } from '@gateway/plugin-conformance';

interface Settings extends Record<string, unknown> {
  readonly place: string;
}

/** Sent spans by place. */
const places = new Map<string, ReceivedSpan[]>();

/** The replaceable parts of an in-memory tracer. */
export interface Parts {
  /** Throws for invalid circumstances. */
  admit(): void;
  parent(parent: api.SpanContext | undefined): api.SpanContext | undefined;
  sends(span: ReceivedSpan, place: ReceivedSpan[]): void;
  started(): void;
  close(flush: () => void, settings: Settings): Promise<void>;
}

export const sound: Parts = {
  admit: refuseSecondTracer,
  parent: (parent) => parent,
  sends: (span, place) => void place.push(span),
  started: () => {},
  close: (flush) => {
    flush();
    api.trace.disable();
    return Promise.resolve();
  },
};

/** A correct tracer, except for these parts. */
export function toyTracer(otherwise: Partial<Parts> = {}): TracerPlugin<Settings> {
  const parts = { ...sound, ...otherwise };
  return {
    start: (settings) => {
      parts.admit();
      parts.started();
      const waiting: ReceivedSpan[] = [];
      const flush = () => {
        for (const span of waiting.splice(0)) parts.sends(span, places.get(settings.place)!);
      };
      const sending = setInterval(flush, 50);
      api.trace.setGlobalTracerProvider(provider(parts, (span) => void waiting.push(span)));
      return Promise.resolve({
        close: async () => {
          clearInterval(sending);
          await parts.close(flush, settings);
        },
      });
    },
  };
}

function provider(parts: Parts, ended: (span: ReceivedSpan) => void): api.TracerProvider {
  const startSpan = (
    name: string,
    { attributes = {} }: api.SpanOptions = {},
    context = api.context.active(),
  ): api.Span => {
    const parent = parts.parent(api.trace.getSpanContext(context));
    const spanId = crypto.randomBytes(8).toString('hex');
    const traceId = parent?.traceId ?? crypto.randomBytes(16).toString('hex');
    const span = api.trace.wrapSpanContext({ traceId, spanId, traceFlags: 1 });
    const parentSpanId = parent && { parentSpanId: parent.spanId };
    return Object.assign(span, {
      isRecording: () => true,
      end: () => ended({ name, traceId, spanId, ...parentSpanId, attributes }),
    });
  };
  return { getTracer: () => ({ startSpan, startActiveSpan: () => undefined as never }) };
}

/** A rig with all optional parts. */
export const toyTracerRig: TracerRig<Settings> = {
  api,
  open: () => {
    const place = `memory:${crypto.randomUUID()}`;
    const spans: ReceivedSpan[] = [];
    places.set(place, spans);
    return Promise.resolve({
      settings: { place },
      spans: () => spans,
      close: () => Promise.resolve(),
    });
  },
};
