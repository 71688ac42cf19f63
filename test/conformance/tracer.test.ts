import * as api from '@opentelemetry/api';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError } from '@gateway/plugin';
import { tracerConformance, tracerRules } from '@gateway/plugin-conformance';
import { collect, namesWhatIsBroken } from './judged.js';
import { sound, toyTracer, toyTracerRig, type Parts } from './toy-tracer.js';

const judge = suite('conformance/tracer');

const quick = { withinMs: 300, quietMs: 120 };
const leaks: NodeJS.Timeout[] = [];

const broken: Readonly<
  Record<string, { readonly parts: Partial<Parts>; readonly also?: Record<string, string> }>
> = {
  'sends-spans': {
    parts: { sends: (span, place) => void place.push({ ...span, traceId: '0'.repeat(32) }) },
  },
  'keeps-the-incoming-parent': {
    parts: { parent: (parent) => (parent?.isRemote ? undefined : parent) },
  },
  'keeps-a-senders-no': {
    parts: { samples: (parent, rate) => rate === 1 || sound.samples(parent, rate) },
  },
  'flushes-at-close': {
    parts: {
      sends: (span, place) => void (/^last 2\d\d$/.test(span.name) ? undefined : place.push(span)),
    },
  },
  'starts-again': {
    parts: {
      // Keeps a context manager, so that the next one cannot be registered and does not know the
      // active span.
      close: (flush) => {
        flush();
        api.trace.disable();
        api.context.disable();
        api.context.setGlobalContextManager(rootAlone);
        return Promise.resolve();
      },
    },
  },
  'refuses-a-second-tracer': {
    parts: {
      admit: ({ place }) => {
        if (!place.startsWith('memory:')) sound.admit({ place, rate: 1 });
      },
    },
  },
  'refuses-wrong-settings': {
    parts: {
      admit: ({ place, key }) => {
        if (!place.startsWith('memory:'))
          throw new PluginError(`${place} with ${key} is no place.`, {
            fix: 'Let it begin with memory:.',
          });
        sound.admit({ place, rate: 1 });
      },
    },
  },
  'tells-when-spans-are-lost': { parts: { lost: () => {} } },
  'closes-what-it-opened': {
    parts: { started: () => void leaks.push(setInterval(() => {}, 1_000)) },
  },
};

const rootAlone: api.ContextManager = {
  active: () => api.ROOT_CONTEXT,
  with: (_context, work, self, ...args) => work.apply(self as ThisParameterType<typeof work>, args),
  bind: (_context, target) => target,
  enable: () => rootAlone,
  disable: () => rootAlone,
};

judge('a tracer that keeps every rule passes all of them', async () => {
  const results = [
    ...(await collect(tracerConformance(toyTracer(), toyTracerRig, quick))).values(),
  ];
  assert.equal(
    results.filter(({ outcome }) => outcome !== 'passed'),
    [],
  );
});

namesWhatIsBroken(
  judge,
  tracerRules,
  broken,
  ({ parts }) => tracerConformance(toyTracer(parts), toyTracerRig, quick),
  () => true,
);

judge.after.each(() => {
  api.context.disable();
  api.trace.disable();
});
judge.after(() => leaks.forEach(clearTimeout));

judge.run();
