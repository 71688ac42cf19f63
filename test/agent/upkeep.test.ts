import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startUpkeep } from '@gateway/agent/upkeep';
import { acceptEvents } from '@gateway/store';
import { batch, newEvent, pendingEvent } from '../store/batches.js';
import { migratedDatabase } from '../store/migrated.js';
import { until } from '../support/until.js';
import { agentConfig, keptLog } from './running.js';

const upkeep = suite('agent/upkeep');

const DAY_MS = 86_400_000;
const dayOf = (day: number) => new Date(Date.now() + day * DAY_MS).toISOString().slice(0, 10);

let db: Awaited<ReturnType<typeof migratedDatabase>>;
upkeep.before.each(async () => {
  db = await migratedDatabase();
  for (const day of [-9, -8, -7, -6]) await db.rows('select ensure_day($1::date)', [dayOf(day)]);
});
upkeep.after.each(() => db.close());

async function daysOfEvents(): Promise<string[]> {
  const rows = await db.rows<{ day: string }>(
    `select right(relname, 8) as day from pg_class where relname ~ '^events_[0-9]{8}$' order by 1`,
  );
  return rows.map(({ day }) => day);
}

upkeep('an agent drops old days when it starts, tells each, and tells which it keeps because they are not finished', async () => {
  await acceptEvents(db.pool, batch([pendingEvent({ occurredAtMs: Date.now() - 8 * DAY_MS })]));
  await db.rows(`drop table events_${dayOf(7).replaceAll('-', '')}`);
  const { log, lines } = keptLog();
  const stop = await startUpkeep({ config: agentConfig(db.url, { retention: { days: 7 } }), database: db, log });
  assert.ok((await daysOfEvents()).includes(dayOf(7).replaceAll('-', '')), 'the coming days are there at once');
  const about = (sentence: string) =>
    lines.filter((line) => line.sentence.includes(sentence)).map(({ fields }) => (fields as { day: string }).day);
  await until('both to be told', () => about('was dropped').length > 0 && about('is kept').length > 0);
  await stop();
  assert.equal([about('was dropped'), about('is kept')], [[dayOf(-9)], [dayOf(-8)]]);
  const days = await daysOfEvents();
  assert.equal(
    [-9, -8, -7, -6].map((day) => days.includes(dayOf(day).replaceAll('-', ''))),
    [false, true, true, true],
  );
});

upkeep('with retention.enabled off nothing is dropped', async () => {
  await acceptEvents(db.pool, batch([newEvent({ occurredAtMs: Date.now() - 400 * DAY_MS })]));
  const before = await daysOfEvents();
  const { log, lines } = keptLog();
  const stop = await startUpkeep({ config: agentConfig(db.url, { retention: { days: 1, enabled: false } }), database: db, log });
  await stop();
  assert.equal(await daysOfEvents(), before);
  assert.equal(lines, []);
});

upkeep.run();
