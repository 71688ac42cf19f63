// deadline: 120 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { collector } from '../support/otlp.js';
import { production, subscribed } from '../support/production.js';
import { sqs } from '../support/sqs.js';
import { checkParents, producer, tracedBy } from './traced.js';

const sampling = suite('e2e/trace-sampling');

const to = await collector();
const queues = await sqs();
const receiver = await endpoint();
const gateway = await production({ agents: 0, settings: { tracer: tracedBy(to) } });
sampling.after(async () => {
  await gateway.close();
  await Promise.all([receiver.close(), queues.close()]);
  to.close();
});
await gateway.database.rows(
  `update projects set config = '{"strategy":{"type":"linear","duration":1,"retry_count":0}}'`,
);
await subscribed(gateway, receiver.url);

/** Sends messages through an agent with this rate and ends it, which flushes its spans. */
async function through(
  rate: number,
  messages: readonly { traceparent?: string; tracestate?: string }[],
  flags: readonly string[] = [],
) {
  const before = { spans: to.spans.length, requests: receiver.requests.length };
  // A new queue: a previous agent's poll could still receive a message of an old one.
  const queue = queues.queue();
  await gateway.api('POST', '/sources', {
    name: queue.name,
    type: 'pub_sub',
    pub_sub: { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) },
  });
  const agent = await gateway.startAgent(['--otel-sample-rate', String(rate), ...flags]);
  const body = JSON.stringify({ event_type: 'order.paid', data: {} });
  await queues.send(
    queue,
    messages.map((attributes) => ({ body, attributes })),
  );
  await receiver.received(before.requests + messages.length);
  await agent.process.terminate();
  gateway.agents.splice(gateway.agents.indexOf(agent), 1);
  const spans = to.spans.slice(before.spans);
  return {
    spans,
    traces: new Set(spans.map(({ traceId }) => traceId)),
    contexts: receiver.requests.slice(before.requests).map(({ headers }) => headers['traceparent']),
  };
}

const STEPS = ['dynamic.event.creation.success', 'ingest.message', 'meta_event_delivery'];

sampling(
  'at 0.1 some traces are recorded, each from its first span to its last; webhooks of the others carry none',
  async () => {
    const { spans, traces, contexts } = await through(0.1, Array<object>(200).fill({}));
    assert.ok(traces.size > 0 && traces.size < 70, `${traces.size} of 200`);
    checkParents(spans);
    for (const id of traces) {
      const names = spans.filter(({ traceId }) => traceId === id).map(({ name }) => name);
      assert.equal(names.sort(), STEPS);
    }
    const sampled = contexts.filter((context) =>
      /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/.test(context ?? ''),
    );
    const without = contexts.filter((context) => context === undefined);
    assert.equal([sampled.length, without.length], [traces.size, 200 - traces.size]);
    assert.is(new Set(sampled).size, sampled.length);
  },
);

sampling(
  'at 0 only what producers record is sent, though attempts fail, and at 1 all but what they do not',
  async () => {
    const [wanted, unwanted] = [producer(), producer({ sampled: false })];
    receiver.answer({ status: 500 });
    const malformed = wanted.traceparent.toUpperCase();
    const none = await through(0, [
      { traceparent: malformed, tracestate: 'a=b' },
      { traceparent: wanted.traceparent },
      { traceparent: unwanted.traceparent },
    ]);
    assert.equal([...none.traces], [wanted.traceId]);
    assert.equal(
      none.contexts.filter((context) => context === undefined).length,
      1,
      'the malformed one is not passed on',
    );
    assert.ok(none.contexts.includes(unwanted.traceparent));
    checkParents(none.spans, [wanted.spanId]);
    assert.equal(none.spans.map(({ name }) => name).sort(), STEPS);

    receiver.answer({ status: 200 });
    const messages = [
      {},
      { traceparent: wanted.traceparent },
      { traceparent: unwanted.traceparent },
    ];
    const all = await through(1, messages, ['--instance-ingest-rate', '1']);
    assert.is(all.traces.size, 2);
    assert.not(all.traces.has(unwanted.traceId));
    assert.ok(all.contexts.includes(unwanted.traceparent));
    const waits = all.spans.filter(
      ({ name, startedAt, endedAt }) => name === 'ingest.throttle' && endedAt - startedAt > 200,
    );
    assert.ok(waits.length > 0, 'one message a second passes');
  },
);

sampling.run();
