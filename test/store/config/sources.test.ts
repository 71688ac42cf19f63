import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { claimNotifications } from '#store/config/notifications';
import {
  findSource,
  insertSource,
  pauseSource,
  pauseSourceByPerson,
  resumeDueSources,
  resumeSource,
  updateSource,
  type NewPause,
} from '#store/config/sources';
import { makeProject, readSnapshot } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const sources = suite('store/config/sources');

const db = await migratedDatabase();
sources.after(() => db.close());
sources.before.each(async () => {
  await db.rows('delete from notifications');
  await db.rows('delete from sources');
});

const TEXT = 'function transform() { for (;;); }';

async function made(): Promise<{
  projectId: string;
  id: string;
  pause(more?: Partial<NewPause>): ReturnType<typeof pauseSource>;
}> {
  const { id: projectId } = await makeProject(db);
  const fields = {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: { type: 'kafka' },
    body_function: TEXT,
    is_disabled: false,
  } as const;
  const { id } = await insertSource(db.knex, projectId, fields);
  const pause = (more: Partial<NewPause> = {}) =>
    pauseSource(db.pool, projectId, id, {
      reason: 'It loops.',
      by: 'host:1',
      seconds: 60,
      facts: null,
      ...more,
    });
  return { projectId, id, pause };
}

const read = async (id: string) =>
  (await readSnapshot(db.pool)).sources.find((source) => source.id === id);

const age = (id: string, interval: string) =>
  db.rows(
    `update sources set resumes_at = resumes_at - $2::interval, resumed_at = resumed_at - $2::interval where id = $1`,
    [id, interval],
  );

sources(
  'of agents that pause a source at once one does, and all of them read why and for how long',
  async () => {
    const { projectId, id, pause } = await made();
    assert.is((await read(id))?.resumes_in_ms, null);
    const paused = await Promise.all(Array.from({ length: 4 }, () => pause()));
    assert.is(paused.filter((it) => it !== undefined).length, 1);
    const seen = await read(id);
    assert.ok(
      seen!.resumes_in_ms! > 50_000 && seen!.resumes_in_ms! <= 60_000,
      `${seen?.resumes_in_ms} ms`,
    );
    assert.equal([seen?.pause_reason, seen?.pauses], ['It loops.', 1]);
    const row = await findSource(db.knex, projectId, id);
    assert.equal([row?.pause_reason, row?.paused_by, row?.pauses], ['It loops.', 'host:1', 1]);
    assert.is(row!.resumes_at!.getTime() - row!.paused_at!.getTime(), 60_000);
  },
);

sources('what is disabled or has no function by now is not paused', async () => {
  const { projectId, id, pause } = await made();
  await updateSource(db.knex, projectId, id, { body_function: null });
  assert.is(await pause(), undefined);
  await updateSource(db.knex, projectId, id, { body_function: TEXT });
  await updateSource(db.knex, projectId, id, { is_disabled: true });
  assert.is(await pause(), undefined);
  assert.is((await read(id))?.resumes_in_ms, null);
});

sources(
  'a pause ends by itself when its time is over and not before, and each that follows is twice as long, up to an hour',
  async () => {
    const { id, pause } = await made();
    const lengths: number[] = [];
    for (let n = 0; n < 9; n++) {
      const startedAt = Date.now();
      const paused = await pause();
      lengths.push(Math.round((paused!.resumes_at.getTime() - startedAt) / 60_000));
      assert.equal(await resumeDueSources(db.pool), [], 'it is too early');
      await age(id, '1 hour');
      assert.equal(
        (await resumeDueSources(db.pool)).map(({ pauses }) => pauses),
        [n + 1],
      );
      assert.is((await read(id))?.resumes_in_ms, null);
    }
    assert.equal(lengths, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    await age(id, '61 minutes');
    assert.is((await pause())?.pauses, 1, 'what was well for an hour begins anew');
  },
);

sources(
  'agents that resume the same source at once raise the version of the configuration no more than needed',
  async () => {
    const { id, pause } = await made();
    await pause();
    await age(id, '1 hour');
    await resumeDueSources(db.pool);
    const { version } = await readSnapshot(db.pool);
    for (let n = 0; n < 3; n++) assert.equal(await resumeDueSources(db.pool), []);
    assert.is((await readSnapshot(db.pool)).version, version);
  },
);

sources(
  'a person who resumes a source, or changes it with that, ends its pause and the count of those before',
  async () => {
    const { projectId, id, pause } = await made();
    await pause();
    assert.equal((await resumeSource(db.knex, projectId, id))?.paused_at, null);
    assert.is((await pause())?.pauses, 1);
    const other = 'function transform() { return null; }';
    assert.ok((await updateSource(db.knex, projectId, id, { name: 'still paused' }))?.paused_at);
    const row = await updateSource(db.knex, projectId, id, { body_function: other }, 0);
    assert.equal([row?.paused_at, row?.pauses, row?.body_function], [null, 0, other]);
  },
);

sources(
  'a change ends a pause only once it has lasted long enough, and shortens one that has not',
  async () => {
    const { projectId, id, pause } = await made();
    await pause({ seconds: 600 });
    const row = await updateSource(
      db.knex,
      projectId,
      id,
      { body_function: 'function transform() { return null; }' },
      60,
    );
    assert.equal(
      [row!.resumes_at!.getTime() - row!.paused_at!.getTime(), row?.pauses, row?.pause_reason],
      [60_000, 1, 'It loops.'],
    );
    const longer = await resumeSource(db.knex, projectId, id, 600);
    assert.equal(longer?.resumes_at, row?.resumes_at, 'nor does it lengthen one');
    await db.rows(`update sources set paused_at = paused_at - interval '1 minute' where id = $1`, [
      id,
    ]);
    const ended = await resumeSource(db.knex, projectId, id, 60);
    assert.equal(
      [ended?.paused_at, ended?.resumes_at, ended?.pause_reason, ended?.paused_by, ended?.pauses],
      [null, null, null, null, 0],
    );
    await pause();
    await age(id, '1 hour');
    await resumeDueSources(db.pool);
    const changed = await updateSource(db.knex, projectId, id, { body_function: TEXT }, 60);
    assert.equal(
      [changed?.paused_at, changed?.resumes_at, changed?.pauses],
      [null, null, 1],
      'nor does it forget a pause that has just ended',
    );
  },
);

sources('people are told of the first of several pauses', async () => {
  const { id, pause } = await made();
  const facts = { since: new Date().toISOString(), error: 'It loops.' };
  await pause({ facts });
  await age(id, '1 hour');
  await resumeDueSources(db.pool);
  await pause({ facts });
  const [claimed, ...more] = await claimNotifications(db.pool, 0);
  assert.equal(more, []);
  assert.equal(
    [claimed?.kind, claimed?.subject, claimed?.name, claimed?.facts.error],
    ['source_failing', id, 'orders', 'It loops.'],
  );
  assert.ok(Date.parse(claimed?.facts.resumes_at ?? '') > Date.now() - 60_000);
});

sources(
  'a pause by a person does not end by itself, and agents do not pause the source meanwhile',
  async () => {
    const { projectId, id, pause } = await made();
    await pauseSourceByPerson(db.knex, projectId, id, 'user ada');
    const seen = await read(id);
    assert.equal([seen?.is_paused, seen?.resumes_in_ms], [true, null]);
    assert.is(await pause(), undefined);
    assert.equal(await resumeDueSources(db.pool), []);
    assert.equal(
      (await updateSource(db.knex, projectId, id, { body_function: null }, 0))?.paused_by,
      'user ada',
    );
    const resumed = await resumeSource(db.knex, projectId, id, 60);
    assert.equal(
      [resumed?.paused_at, resumed?.pause_reason, resumed?.paused_by, resumed?.pauses],
      [null, null, null, 0],
    );
    assert.is((await read(id))?.is_paused, false);
  },
);

sources(
  'a person who pauses a source that agents have paused does not shorten their pause by resuming it',
  async () => {
    const { projectId, id, pause } = await made();
    await pause({ seconds: 600 });
    const taken = await pauseSourceByPerson(db.knex, projectId, id, 'user ada');
    assert.equal(
      [taken?.resumes_at, taken?.pause_reason, taken?.paused_by, taken?.pauses],
      [null, 'It loops.', 'user ada', 1],
    );
    const early = await resumeSource(db.knex, projectId, id, 60);
    assert.is(early!.resumes_at!.getTime() - early!.paused_at!.getTime(), 60_000);
    await pauseSourceByPerson(db.knex, projectId, id, 'user ada');
    await db.rows(`update sources set paused_at = paused_at - interval '1 minute' where id = $1`, [
      id,
    ]);
    assert.is((await resumeSource(db.knex, projectId, id, 60))?.paused_at, null);
  },
);

sources.run();
