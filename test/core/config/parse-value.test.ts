import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseSetting } from '#core/config/parse-value';
import { settings } from '#core/config/settings';

const parsing = suite('core/config/parse-value');
const summary = 'A setting.';

parsing('a number of a text may have a sign, a fraction and an exponent, and nothing else', () => {
  const read = (text: string) => parseSetting({ type: 'number', summary }, text, true);
  assert.equal(
    ['1', '-1', '+1', '.5', '1e3', ' 2.5 '].map(read),
    [1, -1, 1, 0.5, 1000, 2.5].map((value) => ({ value })),
  );
  for (const text of ['', '0x10', '1_000', 'Infinity', 'NaN', '1,5', '1 2'])
    assert.ok('wrong' in read(text), text);
});

parsing(
  'a list of hosts is refused with what to name instead, and an address in brackets is one host',
  () => {
    const read = (key: 'database.host' | 'database.direct.host' | 'kv.host', given: string) =>
      parseSetting(settings[key], given, true);
    for (const list of ['pg1,pg2', 'pg1:5432,pg2:5432', 'pg1, pg2', '10.0.0.1;10.0.0.2', '::1,::2'])
      for (const [key, instead] of [
        ['database.host', 'follows the primary, such as a Service, a pooler'],
        ['database.direct.host', 'follows the primary, such as a Service, a pooler'],
        ['kv.host', 'kv.cluster.addresses, or the Sentinels with kv.sentinel.addresses'],
      ] as const) {
        const { wrong, hint } = read(key, list) as { wrong?: string; hint?: string };
        assert.is(wrong, `must be one host, not the list ${JSON.stringify(list)}`);
        assert.match(hint!, instead);
      }
    assert.equal(read('kv.host', '[::1]'), { value: '::1' });
    assert.equal(read('database.host', '/var/run/a,b'), { value: '/var/run/a,b' });
  },
);

parsing('an integer has no fraction and is exact', () => {
  const read = (given: unknown) => parseSetting({ type: 'integer', summary }, given, true);
  assert.equal(read('1e3'), { value: 1000 });
  for (const given of ['1.5', '9007199254740993', true, [1]])
    assert.ok('wrong' in read(given), String(given));
});

parsing('the file holds real types: a number in quotes is a mistake there', () => {
  assert.equal(parseSetting({ type: 'integer', summary }, 5, false), { value: 5 });
  assert.equal(parseSetting({ type: 'integer', summary }, '5', false), {
    wrong: 'must be an integer, not "5"',
  });
  assert.equal(parseSetting({ type: 'boolean', summary }, 'true', false), {
    wrong: 'must be true or false, not "true"',
  });
});

parsing('bounds belong to what is accepted', () => {
  const row = { type: 'integer', min: 1, max: 3, summary } as const;
  assert.equal(
    [1, 3].map((value) => parseSetting(row, value, false)),
    [{ value: 1 }, { value: 3 }],
  );
  assert.equal(parseSetting(row, 0, false), { wrong: 'must be at least 1, not 0' });
  assert.equal(parseSetting(row, 4, false), { wrong: 'must be at most 3, not 4' });
});

parsing('an option is taken in any case, and is then as the table writes it', () => {
  const row = { type: 'string', options: ['in-memory', 'kv'], summary } as const;
  assert.equal(parseSetting(row, 'In-Memory', false), { value: 'in-memory' });
  assert.equal(parseSetting({ ...row, type: 'list' }, ['KV', 'kv'], false), { value: ['kv'] });
  assert.equal(parseSetting(settings['tracer.type'], 'OTEL', true), { value: 'otel' });
  assert.equal(parseSetting(settings['metrics.metrics_backend'], 'PullMetrics', true), {
    value: 'pullmetrics',
  });
});

parsing('truth has a few spellings', () => {
  const read = (text: string) => parseSetting({ type: 'boolean', summary }, text, true);
  for (const text of ['true', '1', 'YES', 'on']) assert.equal(read(text), { value: true }, text);
  for (const text of ['false', '0', 'no', 'Off']) assert.equal(read(text), { value: false }, text);
  assert.equal(read('maybe'), { wrong: 'must be true or false, not "maybe"' });
});

parsing('a list is separated by commas, may be repeated, and holds nothing twice', () => {
  const row = { type: 'list', summary } as const;
  assert.equal(parseSetting(row, 'a, b,,a', true), { value: ['a', 'b'] });
  assert.equal(parseSetting(row, ['a,b', 'c'], true), { value: ['a', 'b', 'c'] });
  assert.equal(parseSetting(row, [], false), { value: [] });
});

parsing('a network is an address and a length that fits it', () => {
  const row = { type: 'list', format: 'cidr', summary } as const;
  const good = ['10.0.0.0/8', '192.168.1.7/32', '0.0.0.0/0', '::1/128', 'fd00::/8'];
  assert.equal(parseSetting(row, good, false), { value: good });
  for (const bad of [
    '10.0.0.0',
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/8/8',
    'fd00::/129',
    'localhost/8',
    '/8',
    '10.0.0.0/-1',
  ]) {
    assert.equal(parseSetting(row, [bad], false), {
      wrong: `must hold networks such as 10.0.0.0/8, not ${JSON.stringify(bad)}`,
    });
  }
});

parsing('a secret is never repeated', () => {
  for (const type of ['integer', 'number', 'boolean', 'list', 'string'] as const) {
    const parsed = parseSetting({ type, secret: true, summary }, { hunter2: 'hunter2' }, false);
    assert.ok('wrong' in parsed && !JSON.stringify(parsed).includes('hunter2'), type);
  }
});

parsing.run();
