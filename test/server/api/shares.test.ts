import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { longReads } from '#server/api/shares';
import { routes } from '@gateway/server/routes';
import { until } from '../../support/until.js';

const shares = suite('server/api/shares');

shares('long reads take a quarter of the connections, one for each project', async () => {
  const reads = longReads(8);
  const running = new Map<string, number>();
  let most = 0;
  const ends: (() => void)[] = [];
  const read = (owner: string) =>
    reads(owner, async () => {
      running.set(owner, (running.get(owner) ?? 0) + 1);
      most = Math.max(
        most,
        [...running.values()].reduce((sum, n) => sum + n, 0),
      );
      assert.is(running.get(owner), 1);
      await new Promise<void>((resolve) => ends.push(resolve));
      running.set(owner, 0);
    });
  const owners = ['a', 'a', 'a', 'b', 'b', 'c', 'd'];
  const all = owners.map(read);
  for (let ended = 0; ended < owners.length; ended++) {
    await until('a read runs', () => ends.length > ended);
    ends[ended]!();
  }
  await Promise.all(all);
  assert.is(most, 2);
});

shares('long reads of a project beyond six at a time are refused, others are not', async () => {
  const reads = longReads(8);
  let end: () => void = () => undefined;
  const held = reads('a', () => new Promise<void>((resolve) => (end = resolve)));
  const waiting = Array.from({ length: 5 }, () => reads('a', () => Promise.resolve('done')));
  await reads('a', () => Promise.resolve()).then(
    () => assert.unreachable('it was not refused'),
    (error: unknown) => assert.ok(isGatewayError(error, 'too_many_searches')),
  );
  assert.is(await reads('b', () => Promise.resolve('done')), 'done');
  end();
  await held;
  assert.equal(
    await Promise.all(waiting),
    Array.from({ length: 5 }, () => 'done'),
  );
});

shares('all batches are long reads', () => {
  for (const { path, isLong } of routes)
    if (/\/batch(replay|retry|discard)$/.test(path)) assert.ok(isLong, path);
});

shares.run();
