import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileFilter } from '#core/events/filter';
import { filterMismatch } from '#agent/inspect/explain-route';

const mismatch = suite('agent/inspect/filter-mismatch');

const order = { amount: 50, country: 'DE', customer: { tier: 'gold', tags: ['a'] } };

mismatch('a filter that matches has none', () => {
  assert.is(filterMismatch({ amount: { $gte: 50 }, 'customer.tier': 'gold' }, order), undefined);
  assert.is(filterMismatch({}, undefined), undefined);
});

mismatch('the first member that fails is named with its path, what was wanted and what is there', () => {
  assert.equal(filterMismatch({ country: 'DE', amount: { $gte: 100 } }, order), {
    path: 'amount',
    operator: '$gte',
    wanted: 100,
    found: 50,
  });
  assert.equal(filterMismatch({ customer: { tier: { $in: ['silver'] } } }, order)?.path, 'customer.tier');
  assert.equal(filterMismatch({ 'customer.name': 'Ada' }, order), {
    path: 'customer.name',
    operator: '$eq',
    wanted: 'Ada',
    found: undefined,
  });
});

mismatch('of $and the part that fails is named, of $or all of it', () => {
  assert.is(filterMismatch({ $and: [{ country: 'DE' }, { amount: 1 }] }, order)?.path, 'amount');
  const alternatives = [{ country: 'FR' }, { amount: 1 }];
  assert.equal(filterMismatch({ $or: alternatives }, order), { path: '', operator: '$or', wanted: alternatives, found: order });
});

mismatch('it agrees with the compiled filter on every value', () => {
  const values = [order, null, undefined, 'text', 5, [], [1], {}, { amount: null }, { amount: '50' }, { customer: [] }];
  const filters: Record<string, unknown>[] = [
    { amount: 50 },
    { amount: { $neq: 50 } },
    { amount: { $exist: false } },
    { amount: null },
    { customer: {} },
    { customer: { tier: { $exist: true } } },
    { $or: [{ amount: 50 }, { country: { $nin: ['DE'] } }] },
    { $eq: 'text' },
  ];
  for (const filter of filters)
    for (const value of values)
      assert.is(filterMismatch(filter, value) === undefined, compileFilter(filter)(value), JSON.stringify([filter, value]));
});

mismatch.run();
