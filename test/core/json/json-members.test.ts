import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { jsonMembers, repeatedMembers } from '#core/json/json-members';

const line = suite('core/json/json-members');

const jsonLine = (of: string, key: string) =>
  jsonMembers(of).findLast(({ path }) => path === key)?.line;

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
  const expected = {
    kv: 2,
    'kv.port': 2,
    'kv.host': 3,
    list: 4,
    'server.http': 6,
    'server.http.port': 6,
    port: 8,
    query_timeout: 8,
  };
  for (const [key, at] of Object.entries(expected)) assert.is(jsonLine(text, key), at, key);
});

line('what stands in strings and lists is not taken for a member', () => {
  for (const key of ['http', 'deep', 'kv.host.port', 'list.port', 'server.port', ''])
    assert.is(jsonLine(text, key), undefined, key);
});

line('a name with a dot is a way by itself', () => {
  assert.is(jsonLine(text, 'kv.scheme'), 9);
});

line('repeated members have their lines, at every depth and by any spelling', () => {
  assert.equal(repeatedMembers(text), []);
  assert.equal(repeatedMembers('{\n"a": 1,\n"a": 2\n}'), [{ path: 'a', lines: [2, 3] }]);
  assert.equal(repeatedMembers('{"a": {"b": 1,\n"\\u0062": 2, "c": {"b": 1}}}'), [
    { path: 'a.b', lines: [1, 2] },
  ]);
  assert.equal(repeatedMembers('{"a": {"b": 1},\n"a": {"b": 2}}'), [{ path: 'a', lines: [1, 2] }]);
  assert.equal(repeatedMembers('{"a": {"b": 1},\n"a.b": 2}'), [{ path: 'a.b', lines: [1, 2] }]);
  assert.equal(repeatedMembers('{"a": [{"b": 1}, {"b": [[{"c": 1,\n"c": 2}]]}]}'), [
    { path: 'a.1.b.0.0.c', lines: [1, 2] },
  ]);
  assert.equal(repeatedMembers('{"__proto__": 1, "__proto__": 2}'), [
    { path: '__proto__', lines: [1, 1] },
  ]);
  assert.equal(repeatedMembers('{"a": {"b": 1},\n"a.b": 2}', '\n'), []);
});

line.run();
