import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startAgent } from '@gateway/agent';
import { findSource, resumeSource, updateSource, type SourceRow } from '#store/config/sources';
import { migratedDatabase } from '../../store/migrated.js';
import { smtp } from '../../support/smtp.js';
import { until, within } from '../../support/until.js';
import { Broker } from '../memory-source.js';
import { makeProject, makeSource } from '../records.js';
import { agentConfig, keptLog, pluginsOf, type Migrated } from '../running.js';

const pauses = suite('agent/sources/pause-sources');

const LOOP = 'function transform(payload) { for (;;); }';
const GOOD = 'function transform(payload) { return { event_type: "a", data: { payload } }; }';

/** On a busy machine, a call takes longer than the default of these tests. */
const SLOW = { deadline_ms: 100 };

interface Scene {
  readonly db: Migrated;
  readonly broker: Broker;
  readonly source: SourceRow;
  start(
    transform?: object,
    more?: object,
  ): Promise<{ port: number; lines: ReturnType<typeof keptLog>['lines']; close(): Promise<void> }>;
  stored(): Promise<SourceRow>;
  quarantined(): Promise<string[]>;
}

async function scene(bodyFunction: string, test: (scene: Scene) => Promise<void>): Promise<void> {
  const db = await migratedDatabase();
  const broker = new Broker();
  const started: { close(): Promise<void> }[] = [];
  try {
    const projectId = await makeProject(db);
    const source = await makeSource(db, projectId, { queue: 'q', bodyFunction });
    const start: Scene['start'] = async (transform = {}, more = {}) => {
      const { log, lines } = keptLog();
      const limits = { deadline_ms: 20, pause_overruns: 3, pause_seconds: 3600, ...transform };
      const config = agentConfig(db.url, { transform: limits, ...more });
      const running = await within(
        startAgent({ config, plugins: pluginsOf(broker.plugins()), log }),
        30_000,
        'the agent to start',
      );
      let closed: Promise<void> | undefined;
      const it = { port: running.port, lines, close: () => (closed ??= running.close()) };
      started.push(it);
      return it;
    };
    const stored = async () => (await findSource(db.knex, projectId, source.id))!;
    const quarantined = async () =>
      (await db.rows<{ code: string }>('select code from quarantined_messages')).map(
        ({ code }) => code,
      );
    await within(test({ db, broker, source, start, stored, quarantined }), 75_000, 'the test');
  } finally {
    await Promise.all(started.map((it) => within(it.close(), 40_000, 'an agent to close')));
    await db.close();
  }
}

pauses(
  'a source whose function overruns again and again is paused for all agents, and a corrected function reads it at once',
  () =>
    scene(LOOP, async ({ db, broker, source, start, stored, quarantined }) => {
      const [one, two] = await Promise.all([start(SLOW), start(SLOW)]);
      const queue = broker.queue('q');
      await until('both to read', () => queue.readers === 2);
      const outcomes = Array.from({ length: 60 }, (_, n) => queue.send({ n }));
      await until('the pause', async () => (await stored()).paused_at);
      await until('nobody to read', () => queue.readers === 0);

      const { pause_reason: reason, paused_by: by, pauses: count } = await stored();
      assert.match(
        reason ?? '',
        /^\d+ of \d+ calls of its transform function overran within \d+ s; the last one: The function did not return/,
      );
      assert.equal([typeof by, count], ['string', 1]);
      // Messages that were read may still be on their way to the quarantine or back to their broker.
      await until(
        'the others to be with their broker',
        async () => queue.waiting + (await quarantined()).length === 60,
      );
      const codes = await quarantined();
      assert.ok(
        codes.length >= 3 && codes.length <= 20,
        `${codes.length} messages were given to it`,
      );
      assert.ok(codes.every((code) => code === 'transform_timeout'));
      const told = [one, two].flatMap(({ lines }) =>
        lines.filter(({ sentence }) => sentence.startsWith('Paused a source')),
      );
      assert.is(told.length, 1, 'one of them says so');
      for (const { port } of [one, two]) {
        const health = await fetch(`http://127.0.0.1:${port}/healthz?ready`);
        assert.is(health.status, 200);
        assert.match(
          await health.text(),
          /"name":"source q","state":"degraded","reason":"Paused until 20[^"]+Z, then resumed automatically: \d+ of/,
        );
      }

      await updateSource(db.knex, source.project_id, source.id, { body_function: GOOD }, 0);
      await within(Promise.all(outcomes), 20_000, 'the messages that were left');
      assert.is((await db.rows('select from events')).length, 60 - codes.length);
      const healthOf = async (port: number) =>
        (await fetch(`http://127.0.0.1:${port}/healthz?ready`)).text();
      for (const { port } of [one, two])
        await until('health to be well', async () => !(await healthOf(port)).includes('degraded'));
    }),
);

pauses('a corrected function takes over what was read, also when the source is not paused', () =>
  scene(LOOP, async ({ db, broker, source, start, quarantined }) => {
    await start({ deadline_ms: 500, pause_overruns: 0 });
    const queue = broker.queue('q');
    const outcomes = Array.from({ length: 100 }, (_, n) => queue.send({ n }));
    await until('the first to be quarantined', async () => (await quarantined()).length > 0);
    await updateSource(db.knex, source.project_id, source.id, { body_function: GOOD }, 0);
    // The previous function would take two minutes.
    await within(Promise.all(outcomes), 20_000, 'the messages that were read');
    const codes = await quarantined();
    assert.ok(codes.length <= 5, `${codes.length} messages were given to it`);
    assert.is((await db.rows('select from events')).length, 100 - codes.length);
  }),
);

pauses(
  'a project that changes its functions with every message has its sources paused all the same, and a good one is read again soon',
  () =>
    scene(LOOP, async ({ db, broker, source, start, stored, quarantined }) => {
      const other = await makeSource(db, source.project_id, { queue: 'r', bodyFunction: LOOP });
      const sources = [source, other];
      await start({ deadline_ms: 100, pause_seconds: 5 });
      const change = (id: string, text: string) =>
        updateSource(db.knex, source.project_id, id, { body_function: text }, 5);
      for (let n = 0; n < 100; n++)
        for (const queue of ['q', 'r']) void broker.queue(queue).send({ n });
      let over = false;
      const changing = (async () => {
        for (let n = 0; !over; n++)
          for (const { id } of sources) await change(id, `${LOOP} // ${n}`);
      })();
      const rows = () =>
        db.rows<{ pause_reason: string; ms: string }>(
          'select pause_reason, extract(epoch from resumes_at - paused_at) * 1000 as ms from sources where paused_at is not null',
        );
      const paused = await until('both to be paused', async () => {
        const found = await rows();
        return found.length === 2 && found;
      }).finally(() => (over = true));
      await changing;
      for (const { pause_reason: reason, ms } of paused) {
        assert.match(
          reason,
          /^3 of 3 calls of (its transform function|the transform functions of 2 sources of its project) overran within /,
        );
        assert.ok(Number(ms) >= 5000, 'a change does not end it');
      }
      for (const { id } of sources) await change(id, GOOD);
      assert.ok((await stored()).paused_at, 'nor does a good function');
      await until(
        'all messages',
        async () =>
          (await db.rows('select from events')).length + (await quarantined()).length === 200,
      );
      assert.ok((await quarantined()).length < 20);
    }),
);

pauses(
  'a pause ends by itself: the function is tried again, and paused for longer when it still overruns',
  () =>
    scene(LOOP, async ({ broker, start, stored, quarantined }) => {
      await start({ pause_seconds: 1 });
      const queue = broker.queue('q');
      for (let n = 0; n < 200; n++) void queue.send({ n });
      await until('the second pause', async () => {
        const { paused_at: pausedAt, pauses: count } = await stored();
        return pausedAt && count === 2;
      });
      const { paused_at: pausedAt, resumes_at: resumesAt } = await stored();
      assert.is(resumesAt!.getTime() - pausedAt!.getTime(), 2000);
      // A message is quarantined after the call that pauses its source.
      await until('the messages of both pauses', async () => (await quarantined()).length >= 6);
    }),
);

pauses(
  'a person resumes a source as it is: it is tried again, and the count of its pauses restarts',
  () =>
    scene(LOOP, async ({ db, broker, source, start, stored, quarantined }) => {
      await start();
      const queue = broker.queue('q');
      for (let n = 0; n < 100; n++) void queue.send({ n });
      await until('the pause', async () => (await stored()).paused_at);
      await until('nobody to read', () => queue.readers === 0);
      const before = (await quarantined()).length;
      await resumeSource(db.knex, source.project_id, source.id);
      await until('it to be read', async () => (await quarantined()).length > before);
      await until('the next pause', async () => (await stored()).paused_at);
      assert.is((await stored()).pauses, 1);
    }),
);

pauses('what a function throws is cheap: every message is quarantined, and nothing is paused', () =>
  scene(
    'function transform() { throw new Error("odd"); }',
    async ({ broker, start, stored, quarantined }) => {
      await start(SLOW);
      await within(
        Promise.all(Array.from({ length: 100 }, (_, n) => broker.queue('q').send({ n }))),
        30_000,
        'all messages',
      );
      assert.equal(new Set(await quarantined()), new Set(['transform_threw']));
      assert.is((await stored()).paused_at, null);
      assert.is(broker.queue('q').readers, 1);
    },
  ),
);

pauses('with transform.pause_overruns 0 nothing is paused', () =>
  scene(LOOP, async ({ broker, start, stored, quarantined }) => {
    await start({ pause_overruns: 0 });
    await within(
      Promise.all(Array.from({ length: 12 }, (_, n) => broker.queue('q').send({ n }))),
      60_000,
      'all messages',
    );
    assert.is((await quarantined()).length, 12);
    assert.is((await stored()).paused_at, null);
  }),
);

pauses('an agent that stops does not wait for a function that loops on everything', () =>
  scene(LOOP, async ({ broker, start }) => {
    const agent = await start({ deadline_ms: 2000, pause_overruns: 0 });
    const queue = broker.queue('q');
    for (let n = 0; n < 100; n++) void queue.send({ n });
    await until('it to be read', () => queue.waiting === 0);
    const startedAt = performance.now();
    await agent.close();
    const tookMs = performance.now() - startedAt;
    console.log(`  stopped after ${Math.round(tookMs)} ms`);
    assert.ok(tookMs < 20_000, `${tookMs} ms`);
    assert.ok(queue.waiting > 80, `${queue.waiting} messages are left`);
  }),
);

pauses('people are told by email, once', async () => {
  const server = await smtp({ tls: 'none' });
  try {
    await scene(LOOP, async ({ broker, start, stored }) => {
      await start(
        { pause_seconds: 1 },
        { smtp: { url: `127.0.0.1:${server.port}`, from: 'gateway@example.com' } },
      );
      for (let n = 0; n < 200; n++) void broker.queue('q').send({ n });
      const [mail] = await server.received(1);
      assert.is(mail?.headers['subject'], '[gateway] Source q of project shop is paused');
      assert.match(mail?.text ?? '', 'calls of its transform function overran within');
      await until('the second pause', async () => (await stored()).pauses === 2);
      assert.is(server.mails.length, 1);
    });
  } finally {
    await server.close();
  }
});

pauses.run();
