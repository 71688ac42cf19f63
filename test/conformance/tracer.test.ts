import * as api from '@opentelemetry/api';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tracerConformance, tracerRules } from '@gateway/plugin-conformance';
import { collect, namesWhatIsBroken } from './judged.js';
import { toyTracer, toyTracerRig, type Parts } from './toy-tracer.js';

const judge = suite('conformance/tracer');

const quick = { withinMs: 300, quietMs: 120 };
const leaks: NodeJS.Timeout[] = [];

const broken: Readonly<Record<string, Readonly<Record<string, Partial<Parts>>>>> = {
  'sends-spans': {
    'changes trace ids': {
      sends: (span, place) => void place.push({ ...span, traceId: '0'.repeat(32) }),
    },
    'loses spans at close': {
      sends: (span, place) => void (/^last 2\d\d$/.test(span.name) ? undefined : place.push(span)),
    },
  },
  'refuses-a-second-tracer': { 'admits a second one': { admit: () => {} } },
  'closes-what-it-opened': {
    'leaves a timer': { started: () => void leaks.push(setInterval(() => {}, 1_000)) },
  },
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
  (parts) => tracerConformance(toyTracer(parts), toyTracerRig, quick),
  () => true,
);

judge.after.each(() => {
  api.trace.disable();
});
judge.after(() => leaks.forEach(clearTimeout));

judge.run();
