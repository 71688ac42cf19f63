import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import {
  deliveriesStatement,
  eventsStatement,
  messagesStatement,
} from '#store/retention/delete-finished';
import { ofDay } from '#store/retention/partitions';
import { projectsIn } from '#store/retention/retention';
import { genericPlan, onPostgres, PROJECT, readWhole } from '../batches.js';
import { dayOf, finished, onFresh, TABLES } from '../days-of-events.js';

const deleting = suite('store/retention/delete-finished');

onPostgres(deleting)(
  'rows are found by the primary key of their tables: no statement reads a table or an index whole, however the rows are spread',
  () =>
    onFresh(async (db) => {
      for (const project of [newId(), newId(), PROJECT]) await finished(db, 0, 1500, project);
      await finished(db, -200, 1500);
      await db.rows('analyze');
      const nowhere = { suffix: '_default', within: () => '' } as const;
      const statements = [ofDay(dayOf(0)), nowhere].flatMap((place) => [
        deliveriesStatement(place),
        eventsStatement(place),
        messagesStatement(place),
      ]);
      for (const text of statements) {
        const plan = await genericPlan(db, text);
        assert.equal(readWhole(plan), [], `${text}\n${plan}`);
      }
      // The plan of a recursive query is complete only after execution.
      const tables = TABLES.map((table) => `${table}_${dayOf(0).replaceAll('-', '')}`);
      const { rows } = await db.pool.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, costs off, timing off) ${projectsIn(tables)}`,
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      assert.equal(
        [
          plan.match(/Index Only Scan/g)?.length,
          plan.match(/Index Cond/g)?.length,
          readWhole(plan),
        ],
        [3, 3, []],
        plan,
      );
      assert.match(plan, /loops=4/);
    }),
);

deleting.run();
