import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import fc from 'fast-check';
import type { UnclosedBreaker } from '#agent/flow-control/circuit-breakers';
import {
  type GateParts,
  Gates,
  gatesOf,
  type Gate,
  type Question,
} from '#agent/flow-control/gates';
import type { EndpointQueue } from '#agent/flow-control/endpoint-queue';
import type { Endpoint } from '#ingest/routing/project';
import { seed } from '../../support/seed.js';
import { cachedEndpoint } from '../records.js';

const gates = suite('agent/flow-control/gates');

const QUESTIONS: readonly Question[] = ['send', 'commit', 'claim', 'look'];
const ROOM = 20;

/** A state in which every delivery passes. */
const OPEN = {
  isLeased: true,
  shard: 'here',
  isDeleted: false,
  endpoint: {} as Partial<Endpoint>,
  waiting: 1,
  sending: 0,
  hasShare: true,
  isUnproven: false,
  isSlow: false,
  probe: 'none' as EndpointQueue['probe'],
  breaker: undefined as UnclosedBreaker | undefined,
  backsOffMs: 0,
  most: Infinity,
  tokens: 1,
  hasRoom: true,
  isReserve: false,
};
type State = typeof OPEN;

function scene(given: Partial<State>) {
  const state = { ...OPEN, ...given };
  const endpoint = cachedEndpoint(state.endpoint);
  const { waiting, sending, isUnproven, probe } = state;
  const queue = {
    ...{ projectId: endpoint.projectId, endpointId: endpoint.id },
    ...{ waiting, sending, isUnproven, probe },
    isSlow: () => state.isSlow,
    hasShare: () => state.hasShare,
  } as unknown as EndpointQueue;
  const did = { asked: [] as string[], taken: 0, probes: 0 };
  const parts = {
    config: { delivery: { endpoint_concurrency: 50 } },
    configCache: { projects: new Map([[endpoint.projectId, { shard: state.shard }]]) },
    shard: { name: 'here' },
    lease: { isHeld: state.isLeased },
    consumers: { size: 500, busy: 0 },
    inFlight: {
      queues: new Map([[endpoint.id, queue]]),
      hasRoomFor: () => state.hasRoom,
      isReserve: state.isReserve,
      wake: () => undefined,
    },
    circuitBreakers: {
      stateOf: () => state.breaker,
      backsOffMs: () => state.backsOffMs,
      notClosed: () => [],
      backingOff: () => [],
      requestProbe: () => (did.probes++, new Promise(() => undefined)),
    },
    concurrency: { limitOf: (_id: string, most: number) => Math.min(most, state.most) },
    rateLimits: {
      take: () => state.tokens > did.taken && (did.taken++, true),
      room: () => ROOM,
      slots: (_endpoint: unknown, _limit: unknown, count: number, held: number) => ({
        dueInMs: held,
        paceMs: count,
      }),
    },
    backlogPacing: { spreadMs: () => 7_000 },
  } as unknown as GateParts;
  const real = gatesOf(parts);
  const table = Object.fromEntries(
    Object.entries(real).map(([name, gate]): [string, Gate] => [
      name,
      (...of) => (did.asked.push(name), gate(...of)),
    ]),
  ) as typeof real;
  const it = new Gates(parts, table);
  const ask = (question: Question) =>
    it.ask(question, state.isDeleted ? undefined : endpoint, queue);
  return { ask, did, order: Object.keys(table) };
}

/** The answer in words: `postpone all but 100 (breaker: breaker)`. */
function told(given: Partial<State>, question: Question): string {
  const refusal = scene(given).ask(question);
  if (!refusal) return 'send';
  const { gate } = refusal;
  if (refusal.answer !== 'postpone') return `${refusal.answer} (${gate})`;
  const wait = refusal.wait(1);
  return `postpone all but ${refusal.keep} (${gate}: ${typeof wait === 'number' ? wait : wait.reason})`;
}

const limit = { perSecond: 10, burst: 1 };
const open: UnclosedBreaker = { state: 'open', inMs: 1_000, openMs: 4_000 };
const probed: UnclosedBreaker = { state: 'half_open', inMs: 500 };
const all = 'postpone all but 0 (breaker: breaker)';
const probe = 'postpone all but 100 (breaker: breaker)';
const rate = 'postpone all but 20 (rate: rate_limit)';
const slow = (keep: number) => `postpone all but ${keep} (backlog: slow)`;
const backOff = (keep: number) => `postpone all but ${keep} (backOff: back_off)`;
const limited = { endpoint: { limit } };

/** The answers of each gate alone. What is missing passes. */
const cases: readonly (readonly [Partial<State>, Partial<Record<Question, string>>])[] = [
  [{}, {}],
  [{ isLeased: false }, { send: 'keep (lease)' }],
  [{ isDeleted: true }, { send: 'discard (pause)' }],
  [{ endpoint: { status: 'inactive' } }, { send: 'discard (pause)' }],
  [{ endpoint: { status: 'paused' } }, { send: 'postpone all but 0 (pause: Infinity)' }],
  [
    { endpoint: { unreadable: 'newer' } },
    { send: 'postpone all but 0 (pause: 0)', claim: 'keep (pause)' },
  ],
  [{ shard: 'elsewhere' }, { look: 'postpone all but 0 (moved: 0)' }],
  [{ sending: 49 }, {}],
  [{ sending: 50 }, { send: 'keep (concurrency)' }],
  [{ sending: 3, endpoint: { concurrency: 3 } }, { send: 'keep (concurrency)' }],
  [{ sending: 3, most: 3 }, { send: 'keep (concurrency)' }],
  [{ hasShare: false }, { send: 'keep (share)' }],
  [
    { backsOffMs: 5_000 },
    { send: backOff(0), commit: backOff(0), claim: backOff(0), look: backOff(0) },
  ],
  [
    { backsOffMs: 1_000, waiting: 100 },
    { send: backOff(100), commit: backOff(100), claim: backOff(100) },
  ],
  [{ breaker: open }, { send: all, commit: all, claim: all, look: all }],
  [{ breaker: probed, waiting: 99 }, { send: probe }],
  [
    { breaker: probed, waiting: 100 },
    { send: probe, commit: probe, claim: probe },
  ],
  [
    { breaker: probed, waiting: 101 },
    { send: probe, commit: probe, claim: probe, look: probe },
  ],
  [{ breaker: { state: 'due' } }, { send: probe }],
  [{ breaker: { state: 'due' }, probe: 'granted' }, {}],
  [{ ...limited, waiting: 19 }, {}],
  [
    { ...limited, waiting: 20 },
    { commit: rate, claim: rate },
  ],
  [
    { ...limited, waiting: 21, tokens: 0 },
    { send: rate, commit: rate, claim: rate, look: rate },
  ],
  [{ ...limited, waiting: 1, tokens: 0 }, { send: rate }],
  [{ isSlow: true, waiting: 99 }, {}],
  [
    { isSlow: true, waiting: 100 },
    { commit: slow(100), claim: slow(100) },
  ],
  [
    { isSlow: true, waiting: 101 },
    { commit: slow(100), claim: slow(100), look: slow(100) },
  ],
  [
    { isSlow: true, waiting: 5, hasRoom: false },
    { commit: slow(5), claim: slow(5) },
  ],
  [
    { isSlow: true, waiting: 5, isReserve: true },
    { commit: slow(0), claim: slow(0), look: slow(0) },
  ],
  [{ isUnproven: true, waiting: 100 }, { claim: 'keep (backlog)' }],
  [{ hasRoom: false }, { commit: 'keep (room)', claim: 'keep (room)' }],
];

gates('each gate alone sends, keeps, postpones or discards', () => {
  for (const [given, answers] of cases)
    // A deleted endpoint is asked about only before sending.
    for (const question of given.isDeleted ? (['send'] as const) : QUESTIONS)
      assert.is(
        told(given, question),
        answers[question] ?? 'send',
        `${question} ${JSON.stringify(given)}`,
      );
});

gates('of several that refuse the first decides, so that no token is taken in vain', () => {
  const closed = { ...limited, sending: 50, hasShare: false, breaker: open, hasRoom: false };
  const order = ['concurrency', 'share', 'breaker', 'rate'];
  const opened: Partial<State>[] = [{ sending: 0 }, { hasShare: true }, { breaker: undefined }];
  let state: Partial<State> = { ...closed, tokens: 0 };
  for (const gate of order) {
    assert.is(scene(state).ask('send')?.gate, gate);
    state = { ...state, ...opened.shift() };
  }
  const { ask, did } = scene(closed);
  ask('send');
  assert.is(did.taken, 0);
});

gates('a breaker that is due is asked for one probe, when a delivery would be sent', () => {
  const { ask, did } = scene({ breaker: { state: 'due' } });
  for (const question of QUESTIONS) ask(question);
  ask('send');
  assert.is(did.probes, 1);
});

gates('no gate is asked after a refusal, and none is left out before', () => {
  const flag = fc.boolean();
  const states = fc.record({
    isLeased: flag,
    shard: fc.constantFrom('here', 'elsewhere'),
    isDeleted: flag,
    endpoint: fc.record({
      status: fc.constantFrom('active', 'paused', 'inactive'),
      unreadable: fc.constantFrom(null, 'newer'),
      limit: fc.constantFrom(null, limit),
    }),
    waiting: fc.nat(150),
    sending: fc.nat(60),
    hasShare: flag,
    isUnproven: flag,
    isSlow: flag,
    probe: fc.constantFrom('none', 'asked', 'granted'),
    breaker: fc.constantFrom(undefined, open, probed, { state: 'due' } as const),
    tokens: fc.nat(1),
    hasRoom: flag,
    isReserve: flag,
  });
  fc.assert(
    fc.property(states, fc.constantFrom(...QUESTIONS), (state, question) => {
      const given = { ...state, isDeleted: state.isDeleted && question === 'send' };
      const { ask, did, order } = scene(given);
      const refusal = ask(question);
      const places = did.asked.map((gate) => order.indexOf(gate));
      assert.equal(
        places,
        places.toSorted((a, b) => a - b),
        'in the order of the table',
      );
      if (refusal) assert.is(refusal.gate, did.asked.at(-1), 'none after a refusal');
      const passing = scene({});
      passing.ask(question);
      assert.equal(did.asked, passing.did.asked.slice(0, did.asked.length), 'none left out');
      if (!refusal) assert.equal(did.asked, passing.did.asked);
      if (did.taken > 0) assert.not.ok(refusal, 'a token is taken last');
    }),
    { seed, numRuns: 2_000 },
  );
});

gates.run();
