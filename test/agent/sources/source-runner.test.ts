import { PluginError, type SourcePlugin, type WatchContext, whenAborted } from '@gateway/plugin';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Throttle } from '#agent/flow-control/throttle';
import { Pipeline } from '#ingest/pipeline';
import { SourceLags } from '#agent/sources/source-lags';
import { SourceRunner } from '#agent/sources/source-runner';
import { Transformer } from '#ingest/transform/transformer';
import { AgentLease } from '#agent/model/lease';
import { sealer } from '#core/crypto/sealing';
import { TokenBuckets } from '#core/process/token-buckets';
import { LoopShares } from '#core/process/loop-shares';
import { silentLog } from '#core/logging/log';
import { Health } from '#core/process/health';
import { deleteProject } from '#store/config/projects';
import { findEventMessage } from '#store/events/kept-messages';
import {
  deleteSource,
  pauseSourceByPerson,
  resumeSource,
  type SourceRow,
  updateSource,
} from '#store/config/sources';
import { bucketsOn } from '../../support/buckets.js';
import { empty, lockAwaited } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { type Endpoint, endpoint as receiver } from '../../support/endpoint.js';
import { until, within } from '../../support/until.js';
import { Broker } from '../memory-source.js';
import {
  ENCRYPTION_KEY,
  makeEndpoint,
  makeProject,
  makeSource,
  makeSubscription,
  sealedFirst,
} from '../records.js';
import { runAgent, type RunningAgent } from '../running.js';

const sources = suite('agent/sources/source-runner');

const db = await migratedDatabase();
sources.after(() => db.close());

interface Agent {
  readonly lease: AgentLease;
  readonly sources: SourceRunner;
  readonly health: Health;
  /** Messages that brokers deleted, by partition. */
  readonly counted: [partition: string, messages: number][];
}

interface Scene {
  readonly running: RunningAgent;
  readonly broker: Broker;
  readonly at: Endpoint;
  start(): Agent;
  change(source: SourceRow, fields: Parameters<typeof updateSource>[3]): Promise<void>;
}

async function scene(
  test: (scene: Scene) => Promise<void>,
  {
    window = 1000,
    lags,
    watch,
    notifier,
  }: {
    window?: number;
    lags?: SourceLags;
    watch?: SourcePlugin['watch'];
    notifier?: { source(...told: unknown[]): void; lost(): void };
  } = {},
): Promise<void> {
  const running = await runAgent({ db });
  const at = await receiver();
  const broker = new Broker(watch);
  const plugins = broker.plugins();
  const started: SourceRunner[] = [];
  const { eventWriter, sandbox } = running.wiring;
  const start = (): Agent => {
    const health = new Health();
    const counted: Agent['counted'] = [];
    const lease = new AgentLease();
    const pipeline = new Pipeline({
      pace: new TokenBuckets(0),
      loopShares: new LoopShares(0),
      throttle: new Throttle(bucketsOn(running.kv), 0),
      transformer: new Transformer({ sandbox, log: silentLog }),
      eventWriter,
      maxMessageBytes: 10_000,
    });
    const it = new SourceRunner({
      configCache: running.configCache,
      shard: running.wiring.shard,
      pipeline,
      log: silentLog,
      health,
      plugins,
      pushSources: new Map(),
      codecs: new Map(),
      openSecret: sealer(ENCRYPTION_KEY).open,
      window,
      lease,
      lags,
      countLost: (labels, messages) => void counted.push([labels.partition, messages]),
      ...(notifier && { notifier }),
    });
    started.push(it);
    it.start();
    return { sources: it, health, lease, counted };
  };
  try {
    const { id: endpointId } = await makeEndpoint(db, running.projectId, { url: at.url });
    await makeSubscription(db, running.projectId, { endpointId });
    const change: Scene['change'] = async ({ project_id: projectId, id }, fields) =>
      void (await updateSource(db.knex, projectId, id, fields));
    await within(test({ running, broker, at, start, change }), 70_000, 'the test');
  } finally {
    await within(Promise.all(started.map((it) => it.stop())), 20_000, 'the sources to stop');
    await at.close();
    await running.close();
    await db.rows('delete from sources');
    await empty(db);
  }
}

const GOOD = { event_type: 'order.paid', data: { n: 1 } };
const connection = (queue: string) => ({
  type: 'memory',
  workers: 1,
  memory: { queue, password: sealedFirst('hunter2') },
});

sources('a source is read with its connection opened, and its messages are delivered', () =>
  scene(async ({ running, broker, at, start }) => {
    await makeSource(db, running.projectId, { queue: 'q' });
    const { health } = start();
    assert.is(await broker.queue('q').send(GOOD), 'accepted');
    await at.received(1);
    assert.equal(broker.queue('q').passwords, ['hunter2']);
    assert.equal(
      health.components.map(({ state }) => state),
      ['ok'],
    );
  }),
);

sources(
  'an agent is starting until each of its sources is read or has failed once, and never again',
  () =>
    scene(async ({ running, broker, start }) => {
      await makeSource(db, running.projectId, { queue: 'good' });
      await makeSource(db, running.projectId, { queue: 'bad' });
      broker.queue('bad').fail(new PluginError('No such queue.', { fix: 'Make it.' }));
      const { sources: it } = start();
      await until('both to be known', () => running.configCache.sources.length === 2);
      await until('the end of the start', () => !it.isStarting);
      assert.is(broker.queue('good').readers, 1);
      assert.is(broker.queue('bad').connections, 1);
      await makeSource(db, running.projectId, { queue: 'later' });
      await until('the later one to be read', () => {
        assert.not(it.isStarting);
        return broker.queue('later').readers === 1;
      });
    }),
);

sources(
  'a source that a person has paused is not read, its messages stay with their broker, and it goes on when it is resumed',
  () =>
    scene(async ({ running, broker, start }) => {
      const { project_id: projectId, id } = await makeSource(db, running.projectId, { queue: 'q' });
      const { health } = start();
      const queue = broker.queue('q');
      await until('a reader', () => queue.readers === 1);
      await pauseSourceByPerson(db.knex, projectId, id, 'user ada');
      await until('nobody to read', () => queue.readers === 0);
      const sent = queue.send(GOOD);
      await until('health to tell', () => health.components[0]?.state === 'degraded');
      assert.is(
        health.components[0]?.reason,
        'Paused until a person resumes it: The source was paused over the management API.',
      );
      assert.is(
        start().health.components[0]?.state,
        'degraded',
        'an agent that starts does not read it either',
      );
      assert.is(queue.waiting, 1);
      await resumeSource(db.knex, projectId, id);
      assert.is(await within(sent, 10_000, 'the message'), 'accepted');
    }),
);

sources(
  'what a plugin tells of its lag stands as long as its run, and it is not asked when nobody wants to know',
  async () => {
    const lags = new SourceLags();
    await scene(
      async ({ running, broker, start, change }) => {
        const source = await makeSource(db, running.projectId, { queue: 'q' });
        start();
        const queue = broker.queue('q');
        await until('a reader', () => queue.readers === 1);
        queue.lag?.('0', 7);
        assert.equal(lags.lags(), [
          { projectId: running.projectId, sourceId: source.id, partition: '0', messages: 7 },
        ]);
        await change(source, { is_disabled: true });
        await until('the lag to be forgotten', () => lags.lags().length === 0);
        assert.is(queue.readers, 0);
        queue.lag?.('0', 7);
        assert.equal(lags.lags(), [], 'a run that has ended tells nothing');
      },
      { lags },
    );
    await scene(async ({ running, broker, start }) => {
      await makeSource(db, running.projectId, { queue: 'q' });
      start();
      await until('a reader', () => broker.queue('q').readers === 1);
      assert.is(broker.queue('q').lag, undefined);
    });
  },
);

sources(
  'messages that the broker deleted before they were read are counted by partition, and shown in health beside advice',
  () =>
    scene(async ({ running, broker, start }) => {
      await makeSource(db, running.projectId, { queue: 'q' });
      const { health, counted } = start();
      const queue = broker.queue('q');
      await until('it to be read', () => health.state === 'ok' && queue.lost);
      for (const [partition, messages] of [
        ['0', 5],
        ['1', 2],
        ['0', 1],
        ['0', -1],
        ['0', NaN],
        ['0', 0],
      ] as const)
        queue.lost!(partition, messages);
      assert.equal(counted, [
        ['0', 5],
        ['1', 2],
        ['0', 1],
        ['0', 0],
      ]);
      assert.is(health.state, 'degraded');
      assert.match(
        health.components[0]?.reason ?? '',
        'The broker has deleted up to 8 messages of 2 partitions before they were read.',
      );
    }),
);

sources(
  'a source that cannot be read has a lag and an age, and what its plugin advises is shown once it is read',
  async () => {
    const lags = new SourceLags();
    let watched: WatchContext | undefined;
    const watch: SourcePlugin['watch'] = (_connection, context) =>
      whenAborted((watched = context).signal);
    await scene(
      async ({ running, broker, start, change }) => {
        const queue = broker.queue('q');
        queue.failure = new PluginError('No such queue.', { fix: 'Make it.' });
        const source = await makeSource(db, running.projectId, { queue: 'q' });
        const { health } = start();
        await until('it to be down', () => health.state === 'down' && watched);
        watched!.lag('0', 7);
        watched!.advise('Add a partition.');
        assert.equal(lags.lags(), [
          { projectId: running.projectId, sourceId: source.id, partition: '0', messages: 7 },
        ]);
        const age = () => lags.ages()[0]!.seconds;
        const before = age();
        await until('the age to grow', () => age() > before + 0.1);
        assert.is(health.state, 'down');
        queue.failure = undefined;
        await until('it to be read', () => health.components[0]?.reason === 'Add a partition.');
        assert.is(health.state, 'degraded');
        const unread = age();
        assert.is(await queue.send(GOOD), 'accepted');
        assert.ok(age() < unread, 'the age starts again with a message');
        watched!.advise(null);
        assert.is(health.state, 'ok');
        await change(source, { is_disabled: true });
        await until('it to be forgotten', () => lags.ages().length === 0);
        assert.ok(watched!.signal.aborted);
        assert.is(queue.lag, undefined, 'run is not asked for what watch reports');
      },
      { lags, watch },
    );
  },
);

sources(
  'an agent takes on another share of the readers when it has lasted ten seconds, with a new connection only if the plugin needs one',
  () =>
    scene(async ({ running, broker, start }) => {
      const [followed, restarted] = [broker.queue('followed'), broker.queue('restarted')];
      followed.follows = true;
      for (const queue of ['followed', 'restarted'])
        await makeSource(db, running.projectId, { queue, workers: 3 });
      await running.configCache.refresh();
      const { sources: it, lease, health } = start();
      await until('readers', () => followed.readers + restarted.readers === 2);
      // Whole milliseconds: sums of fractions are inexact.
      const at = Math.round(performance.now());
      lease.readers = [-1];
      it.share(at);
      lease.readers = [];
      it.share(at + 8_000);
      lease.readers = [-1];
      it.share(at + 12_000);
      it.share(at + 21_000);
      assert.equal(
        [followed.workers, restarted.workers],
        [[3], [3]],
        'an agent that restarts changes nothing',
      );
      it.share(at + 22_000);
      await until('the new connection', () => restarted.connections === 2);
      it.share(at + 23_000);
      assert.equal(
        [followed.workers, restarted.workers],
        [
          [3, 1],
          [3, 1],
        ],
      );
      assert.is(followed.connections, 1);
      assert.is(await within(restarted.send(GOOD), 20_000, 'the message'), 'accepted');
      assert.is(health.state, 'ok');
    }),
);

/** A message in a topic that was deleted and created again, with timestamps set by the producer. */
const reused = { coordinates: 'orders/0/7', timestamp: Date.UTC(2026, 0, 1) };
const numbered = (n: number) => ({ event_type: 'order.paid', data: { n } });

sources(
  'another message at the same coordinates and time is accepted, and each of them is known when it comes again',
  () =>
    scene(async ({ running, broker, at, start }) => {
      await makeSource(db, running.projectId, { queue: 'q' });
      start();
      const queue = broker.queue('q');
      const outcomes = [];
      for (const n of [1, 2, 1, 2, 3]) outcomes.push(await queue.send(numbered(n), reused));
      assert.equal(outcomes, ['accepted', 'accepted', 'duplicate', 'duplicate', 'accepted']);
      const atOnce = await Promise.all(
        [4, 5, 4].map((n) => queue.send(numbered(n), { ...reused, coordinates: 'orders/0/8' })),
      );
      assert.equal(atOnce.sort(), ['accepted', 'accepted', 'duplicate']);
      await at.received(5);
      const bodies = at.requests.map(
        ({ body }) => (JSON.parse(body.toString()) as { n: number }).n,
      );
      assert.equal(bodies.sort(), [1, 2, 3, 4, 5]);
    }),
);

sources(
  'of what a function makes of a message, only those events get an id of their own whose id another message has',
  () =>
    scene(async ({ running, broker, start }) => {
      const bodyFunction = `function transform(payload) { return payload.map((n) => ({ event_type: 'a', data: { n } })) }`;
      await makeSource(db, running.projectId, { queue: 'q', bodyFunction });
      start();
      const queue = broker.queue('q');
      for (const body of [[1], [2, 3], [2, 3], [1]]) await queue.send(body, reused);
      const rows = await db.rows<{ data: string }>(
        'select data from events where project_id = $1 order by data',
        [running.projectId],
      );
      assert.equal(
        rows.map(({ data }) => data),
        ['{"n":1}', '{"n":2}', '{"n":3}'],
      );
    }),
);

sources(
  'another message at the coordinates of an event keeps its idempotency key, and what has a key of an event is a duplicate',
  () =>
    scene(async ({ running, broker, start }) => {
      await makeSource(db, running.projectId, { queue: 'q' });
      start();
      const queue = broker.queue('q');
      const keyed = (n: number, key: string) => ({ ...numbered(n), idempotency_key: key });
      assert.is(await queue.send(keyed(1, 'one'), reused), 'accepted');
      assert.is(await queue.send(keyed(2, 'two'), reused), 'accepted');
      assert.is(await queue.send(keyed(2, 'two'), reused), 'duplicate');
      assert.is(await queue.send(keyed(3, 'one'), reused), 'duplicate');
      const rows = await db.rows<{ data: string }>(
        'select e.data from events e join idempotency_keys k on k.event_id = e.id where e.project_id = $1 order by 1',
        [running.projectId],
      );
      assert.equal(
        rows.map(({ data }) => data),
        ['{"n":1}', '{"n":2}'],
      );
    }),
);

sources(
  'a message at the coordinates of an event without a digest is a duplicate if it has the same content, and else is kept in quarantine',
  () =>
    scene(async ({ running, broker, start }) => {
      await makeSource(db, running.projectId, { queue: 'q' });
      start();
      const queue = broker.queue('q');
      assert.is(await queue.send(numbered(1), reused), 'accepted');
      // The row of an event that an agent of the previous version accepted.
      await db.rows('update events set digest = null where project_id = $1', [running.projectId]);
      assert.is(await queue.send(numbered(1), reused), 'duplicate');
      assert.is(await queue.send(numbered(2), reused), 'quarantined');
      assert.is(await queue.send(numbered(3), reused), 'quarantined');
      const rows = await db.rows<{ code: string; raw: Buffer }>(
        'select code, raw from quarantined_messages where project_id = $1 order by raw',
        [running.projectId],
      );
      assert.equal(
        rows.map(({ code, raw }) => [code, raw.toString()]),
        [2, 3].map((n) => ['coordinates_reused', JSON.stringify(numbered(n))]),
      );
    }),
);

sources('messages at the same coordinates and time are all kept in quarantine, each once', () =>
  scene(async ({ running, broker, start }) => {
    await makeSource(db, running.projectId, { queue: 'q' });
    start();
    const queue = broker.queue('q');
    for (const outcome of ['quarantined', 'duplicate'])
      for (const body of ['one', 'two']) assert.is(await queue.send(body, reused), outcome);
    await Promise.all(
      ['three', 'four', 'three'].map((body) =>
        queue.send(body, { ...reused, coordinates: 'orders/0/8' }),
      ),
    );
    const rows = await db.rows<{ raw: Buffer }>(
      'select raw from quarantined_messages where project_id = $1',
      [running.projectId],
    );
    assert.equal(rows.map(({ raw }) => raw.toString()).sort(), ['four', 'one', 'three', 'two']);
  }),
);

/** Event data and the stored bytes of their messages. */
async function keptOf(running: RunningAgent): Promise<[data: string, raw: string | undefined][]> {
  const { projectId } = running;
  const rows = await db.rows<{ id: string; data: string }>(
    'select id, data from events where project_id = $1 order by data',
    [projectId],
  );
  return Promise.all(
    rows.map(async ({ id, data }) => [
      data,
      (await findEventMessage(db.pool, projectId, id))?.raw?.toString(),
    ]),
  );
}

sources(
  'a source that keeps messages stores each with its events, one of the same coordinates too; what is dropped or quarantined is not',
  () =>
    scene(async ({ running, broker, start }) => {
      const bodyFunction = `function transform(payload) {
      if (payload === null) throw new Error('no');
      return payload.length === 0 ? null : payload.map((n) => ({ event_type: 'a', data: { n } }));
    }`;
      await makeSource(db, running.projectId, { queue: 'q', bodyFunction, keep_messages: true });
      start();
      const queue = broker.queue('q');
      const outcomes = [];
      for (const body of [[1], [2, 3], [2, 3], [], 'null'])
        outcomes.push(await queue.send(body, reused));
      assert.equal(outcomes, ['accepted', 'accepted', 'duplicate', 'dropped', 'quarantined']);
      assert.equal(await keptOf(running), [
        ['{"n":1}', '[1]'],
        ['{"n":2}', '[2,3]'],
        ['{"n":3}', '[2,3]'],
      ]);
      const [stored] = await db.rows(
        'select count(*)::int as n from event_messages where project_id = $1',
        [running.projectId],
      );
      assert.equal(stored, { n: 2 });
    }),
);

sources('whether messages are kept changes for the next message, without a new connection', () =>
  scene(async ({ running, broker, start, change }) => {
    const queue = broker.queue('q');
    const source = await makeSource(db, running.projectId, { queue: 'q' });
    start();
    for (const [n, keep] of [false, true, false].entries()) {
      await change(source, { keep_messages: keep });
      const known = () =>
        running.configCache.sources.find(({ id }) => id === source.id)?.keep_messages === keep;
      await until('the agent to know', known);
      await queue.send(numbered(n));
    }
    assert.equal(await keptOf(running), [
      ['{"n":0}', undefined],
      ['{"n":1}', JSON.stringify(numbered(1))],
      ['{"n":2}', undefined],
    ]);
    assert.is(queue.connections, 1);
  }),
);

sources('a source that appears is read, one that is disabled or deleted is not', () =>
  scene(async ({ running, broker, start, change }) => {
    const { health } = start();
    const queue = broker.queue('q');
    const source = await makeSource(db, running.projectId, { queue: 'q' });
    await until('a reader', () => queue.readers === 1);
    await change(source, { is_disabled: true });
    await until('no reader', () => queue.readers === 0);
    const waiting = queue.send(GOOD);
    await change(source, { is_disabled: false });
    assert.is(await within(waiting, 20_000, 'the message'), 'accepted');
    await deleteSource(db.knex, running.projectId, source.id);
    await until('no reader again', () => queue.readers === 0);
    await until('health to forget it', () => health.components.length === 0);
  }),
);

sources('sources of incoming and of deleted projects are not read', () =>
  scene(async ({ broker, start }) => {
    const incoming = await makeProject(db, { type: 'incoming' });
    const deleted = await makeProject(db);
    await makeSource(db, incoming, { queue: 'incoming' });
    await makeSource(db, deleted, { queue: 'deleted' });
    start();
    await until('the second one to be read', () => broker.queue('deleted').readers === 1);
    await deleteProject(db.knex, deleted);
    await until('no reader', () => broker.queue('deleted').readers === 0);
    assert.is(broker.queue('incoming').connections, 0);
  }),
);

sources('a changed function is used for the next message, without a new connection', () =>
  scene(async ({ running, broker, at, start, change }) => {
    const queue = broker.queue('q');
    const source = await makeSource(db, running.projectId, { queue: 'q' });
    start();
    for (const n of [1, 2, 3]) {
      await change(source, {
        body_function: `function transform(payload) { return { event_type: 'a', data: { version: ${n}, payload } } }`,
      });
      const reader = () =>
        running.configCache.sources
          .find(({ id }) => id === source.id)
          ?.body_function?.includes(`version: ${n}`);
      await until('the agent to know', reader);
      assert.is(await queue.send('x'), 'accepted');
      await at.received(n);
    }
    assert.equal(
      at.requests.map(({ body }) => (JSON.parse(body.toString()) as { version: number }).version),
      [1, 2, 3],
    );
    assert.is(queue.connections, 1);
    await change(source, { body_function: null, name: 'another name' });
    await until(
      'the function to be gone',
      () => running.configCache.sources.find(({ id }) => id === source.id)?.body_function === null,
    );
    assert.is(await queue.send(GOOD), 'accepted');
    assert.is(queue.connections, 1);
  }),
);

sources('a changed connection is a new one, after the old one is closed', () =>
  scene(async ({ running, broker, start, change }) => {
    const source = await makeSource(db, running.projectId, { queue: 'old' });
    start();
    await until('the old one to be read', () => broker.queue('old').readers === 1);
    await change(source, { pub_sub: connection('new') });
    assert.is(
      await within(broker.queue('new').send(GOOD), 20_000, 'a message of the new one'),
      'accepted',
    );
    assert.is(broker.queue('old').readers, 0);
    assert.is(broker.queue('new').connections, 1);
  }),
);

sources('a source that fails is tried again, and health tells why and what to do', () =>
  scene(async ({ running, broker, start }) => {
    const queue = broker.queue('q');
    queue.failure = new PluginError('The broker refused the password.', {
      fix: 'Check the field password.',
    });
    await makeSource(db, running.projectId, { queue: 'q', name: 'orders' });
    const { health } = start();
    await until('the failure to be told', () => health.state === 'down');
    const [component] = health.components;
    assert.match(component!.name, /orders/);
    assert.is(
      component!.reason,
      'The broker refused the password. Check the field password. Trying again.',
    );
    await until('another try', () => queue.connections >= 3);
    queue.failure = undefined;
    assert.is(await within(queue.send(GOOD), 40_000, 'the message'), 'accepted');
    await until('health to be well', () => health.state === 'ok');
  }),
);

sources('a source that is thrown out in the middle of its work loses nothing', () =>
  scene(async ({ running, broker, start }) => {
    const queue = broker.queue('q');
    await makeSource(db, running.projectId, { queue: 'q' });
    start();
    await until('a reader', () => queue.readers === 1);
    const outcomes = Array.from({ length: 300 }, (_, n) =>
      queue.send({ event_type: 'a', data: { n } }),
    );
    queue.fail(new PluginError('The connection broke.', { fix: 'Wait.' }));
    await until('it to be thrown out', () => queue.readers === 0);
    queue.failure = undefined;
    const settled = await within(Promise.all(outcomes), 40_000, 'all messages');
    assert.ok(settled.every((outcome) => outcome === 'accepted' || outcome === 'duplicate'));
    assert.equal(await db.rows('select count(*)::int as n from events'), [{ n: 300 }]);
  }),
);

sources('a kind that no plugin knows is told with the kinds that are known', () =>
  scene(async ({ running, start, change }) => {
    const source = await makeSource(db, running.projectId, { queue: 'q' });
    await change(source, { pub_sub: { type: 'rabbit', rabbit: {} } });
    await running.configCache.refresh();
    const { health } = start();
    await until('the failure to be told', () => health.state === 'down');
    assert.match(
      health.components[0]!.reason ?? '',
      'There is no active source plugin named "rabbit"; active are: memory.',
    );
  }),
);

sources('what a server said is told to the operator, and not to the tenant', () => {
  const told = new Set<unknown>();
  const source = (_: unknown, state: unknown, reason: unknown) =>
    void (state === 'failing' && reason && told.add(reason));
  return scene(
    async ({ running, broker, start }) => {
      await makeSource(db, running.projectId, { queue: 'q' });
      await running.configCache.refresh();
      const queue = broker.queue('q');
      queue.fail(
        new PluginError('The broker failed.', {
          fix: 'Wait.',
          said: 'words from inside'.padEnd(10_000, '!'),
        }),
      );
      const { health } = start();
      const reason = () => health.components[0]?.reason ?? '';
      await until('the failure to be told', () =>
        reason().includes('The broker failed. The answer: words from inside!'),
      );
      assert.ok(reason().length < 700);
      queue.fail(new Error('words of a library'));
      await until('the next failure to be told', () => reason().includes('words of a library'));
      assert.equal(
        [...told],
        ['The broker failed. Wait.', 'The source cannot be read; the agents log the reason.'],
      );
    },
    { notifier: { source, lost: () => undefined } },
  );
});

sources('a secret that cannot be opened is told without any of it, and no connection is made', () =>
  scene(async ({ running, broker, start, change }) => {
    const source = await makeSource(db, running.projectId, { queue: 'q' });
    const foreign = sealer(Buffer.alloc(32, 1).toString('base64')).seal('hunter2', [
      'sources',
      source.id,
      'password',
    ]);
    await change(source, {
      pub_sub: { type: 'memory', memory: { queue: 'q', password: foreign } },
    });
    await running.configCache.refresh();
    const { health } = start();
    await until('the failure to be told', () => health.state === 'down');
    const reason = health.components[0]!.reason ?? '';
    assert.ok(
      reason.length > 10 && !reason.includes(foreign.slice(10, 30)) && !reason.includes('hunter2'),
      reason,
    );
    assert.is(broker.queue('q').connections, 0);
  }),
);

const begunAtMs: number[] = [];
sources('sources of a project start one after the other', () =>
  scene(
    async ({ running, start }) => {
      for (let n = 0; n < 9; n++) await makeSource(db, running.projectId, { queue: `q${n}` });
      start();
      await until('all to start', () => begunAtMs.length === 9);
      const took = Math.max(...begunAtMs) - Math.min(...begunAtMs);
      assert.ok(took > 150, `nine sources started within ${took} ms`);
    },
    {
      watch: async (_connection, { signal }) => {
        begunAtMs.push(performance.now());
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    },
  ),
);

sources('no more messages are in flight than the window says', () =>
  scene(
    async ({ running, broker, start }) => {
      const queue = broker.queue('q');
      await makeSource(db, running.projectId, { queue: 'q' });
      start();
      await Promise.all(Array.from({ length: 50 }, () => queue.send(GOOD)));
      assert.ok(queue.mostInFlight <= 3);
    },
    { window: 3 },
  ),
);

sources('sources of the same name in two projects are two in health', () =>
  scene(async ({ running, broker, start }) => {
    const other = await makeProject(db);
    broker.queue('bad').failure = new PluginError('No.', { fix: 'Yes.' });
    await makeSource(db, running.projectId, { queue: 'good', name: 'orders' });
    await makeSource(db, other, { queue: 'bad', name: 'orders' });
    await running.configCache.refresh();
    const { health } = start();
    await until('both to be told', () => health.components.length === 2);
    await until('one to be well and one not', () => {
      const states = health.components.map(({ state }) => state).sort();
      return states[0] === 'down' && states[1] === 'ok';
    });
  }),
);

sources('two agents in one process read the same source, each with a connection of its own', () =>
  scene(async ({ running, broker, start, change }) => {
    const source = await makeSource(db, running.projectId, { queue: 'q' });
    const queue = broker.queue('q');
    start();
    const second = start();
    await until('two readers', () => queue.readers === 2);
    await change(source, { pub_sub: connection('new') });
    await until('two readers of the new one', () => broker.queue('new').readers === 2);
    await second.sources.stop();
    assert.is(broker.queue('new').readers, 1);
    assert.is(await within(broker.queue('new').send(GOOD), 20_000, 'the message'), 'accepted');
  }),
);

sources(
  'stopping waits for what is in flight, also of a connection that is just being replaced',
  () =>
    scene(async ({ running, broker, start, change }) => {
      const source = await makeSource(db, running.projectId, { queue: 'old' });
      const { sources: it } = start();
      await until('a reader', () => broker.queue('old').readers === 1);
      const blocker = await db.connect();
      try {
        await blocker.query('begin');
        await blocker.query('lock table events in share row exclusive mode');
        const outcome = broker.queue('old').send(GOOD);
        await lockAwaited(db, 'the commit to wait');
        await change(source, { pub_sub: connection('new') });
        await until('the agent to know', () =>
          JSON.stringify(running.configCache.sources).includes('"new"'),
        );
        let stopped = false;
        const stopping = it.stop().then(() => (stopped = true));
        await new Promise((resolve) => setTimeout(resolve, 300));
        assert.not.ok(stopped, 'it did not wait for the message that is in flight');
        await blocker.query('commit');
        assert.is(await within(outcome, 20_000, 'the outcome'), 'accepted');
        await within(stopping, 20_000, 'the stop');
        assert.is(broker.queue('new').connections, 0);
      } finally {
        await blocker.end();
      }
    }),
);

sources.run();
