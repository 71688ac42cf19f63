import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { jsonLine } from '#cli/config/json-line';

const line = suite('cli/config/json-line');

const text = `{
  "kv": { "port": 1,
    "host": "a { \\"port\\": [" },
  "list": ["port", { "deep": 1 }, 2],
  "server": {
    "http": { "p\\u006frt": 2 }
  },
  "port": 3, "query_timeout": 4,
  "kv.scheme": "redis"
}`;

line('a member is found by the names on the way to it', () => {
  const expected = { kv: 2, 'kv.port': 2, 'kv.host': 3, list: 4, 'server.http': 6, 'server.http.port': 6, port: 8, query_timeout: 8 };
  for (const [key, at] of Object.entries(expected)) assert.is(jsonLine(text, key), at, key);
});

line('what stands in strings and lists is not taken for a member', () => {
  for (const key of ['http', 'deep', 'kv.host.port', 'list.port', 'server.port', '']) assert.is(jsonLine(text, key), undefined, key);
});

line('a name with a dot is a way by itself', () => {
  assert.is(jsonLine(text, 'kv.scheme'), 9);
});

line('of a repeated member the last counts', () => {
  assert.is(jsonLine('{\n"a": 1,\n"a": 2\n}', 'a'), 3);
});

line.run();
