import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeProject, startApi, type Api } from '../api.js';

/** Documents that a tenant makes as expensive as it can: their cost must grow as their size does. */
const documents = suite('server/routes/documents');

let api: Api;
let project: { path: string; key: string };
let endpointId: string;
documents.before(async () => {
  api = await startApi();
  project = await makeProject(api);
  const endpoint = { name: 'e', url: 'https://a.example.com' };
  endpointId = (await api.call('POST', `${project.path}/endpoints`, endpoint)).body.data.uid;
});
documents.after(() => api.close());

/** As many pieces as `bytes` hold, joined by commas. */
function fill(bytes: number, piece: (k: number) => string): string {
  const pieces: string[] = [];
  for (let [k, length] = [0, 0]; length < bytes; k++) {
    pieces.push(piece(k));
    length += pieces.at(-1)!.length + 1;
  }
  return pieces.join();
}

const openApi = (webhooks: string, schemas = '') =>
  `{"openapi":"3.1.0","webhooks":{${webhooks}},"components":{"schemas":{${schemas}}}}`;
const webhook = (schema: string) =>
  `"a":{"post":{"requestBody":{"content":{"application/json":{"schema":${schema}}}}}}`;
const nested = (depth: number, inner: string) =>
  '{"properties":{"a":'.repeat(depth) + inner + '}}'.repeat(depth);
const toLevels = (depth: number) =>
  Array.from(
    { length: depth },
    (_, k) => `{"$ref":"#/components/schemas/d${'/properties/a'.repeat(k)}"}`,
  ).join();
const members = (bytes: number) => fill(bytes, (k) => `"p${k}":1`);

/** Each by the bytes that it may take. */
const hostile: [what: string, method: string, path: string, of: (bytes: number) => string][] = [
  [
    'references to schemas of one name',
    'POST',
    '/event-types/import',
    (bytes) =>
      openApi(
        webhook(
          `{"anyOf":[${fill(bytes / 2, (k) => `{"$ref":"#/components/schemas/${k}/properties/x"}`)}]}`,
        ),
        fill(bytes / 2, (k) => `"${k}":{"properties":{"x":{}}}`),
      ),
  ],
  [
    'references to all levels of a schema',
    'POST',
    '/event-types/import',
    (bytes) =>
      openApi(
        webhook(`{"anyOf":[${toLevels(80)}]}`),
        `"d":${nested(80, `{"anyOf":[${fill(bytes, () => '{}')}]}`)}`,
      ),
  ],
  [
    'references to all levels above a long list',
    'POST',
    '/event-types/import',
    (bytes) =>
      openApi(
        webhook(`{"anyOf":[${toLevels(80)}]}`),
        `"d":${nested(80, `{"enum":[${fill(bytes, String)}]}`)}`,
      ),
  ],
  [
    'a chain of references',
    'POST',
    '/event-types/import',
    (bytes) =>
      openApi(
        webhook('{"$ref":"#/components/schemas/0"}'),
        fill(bytes, (k) => `"${k}":{"items":{"$ref":"#/components/schemas/${k + 1}"}}`),
      ),
  ],
  [
    'webhooks without number',
    'POST',
    '/event-types/import',
    (bytes) => openApi(fill(bytes, (k) => `"${k}":{"post":{}}`)),
  ],
  ['unknown members', 'POST', '/events', (bytes) => `{${members(bytes)}}`],
  [
    'headers without number',
    'POST',
    '/events',
    (bytes) => `{"event_type":"a","data":{},"custom_headers":{${members(bytes)}}}`,
  ],
  [
    'members without number',
    'POST',
    '/events',
    (bytes) => `{"event_type":"a","data":{${members(bytes)}}}`,
  ],
  [
    'escaped characters',
    'POST',
    '/events',
    (bytes) => `{"event_type":"a","data":{"a":"${'\\\\'.repeat(bytes / 2)}"}}`,
  ],
  [
    'elements without number',
    'POST',
    '/events/batch',
    (bytes) => `{"events":[${fill(bytes, () => '{}')}]}`,
  ],
  [
    'an element of unknown members',
    'POST',
    '/events/batch',
    (bytes) => `{"events":[{${members(bytes)}}]}`,
  ],
  [
    'a member that is repeated',
    'POST',
    '/events/batch',
    (bytes) => `{"events":[{"event_type":"a",${fill(bytes, () => '"data":{}')}}]}`,
  ],
  [
    'a test event',
    'POST',
    '/endpoints/:id/test',
    (bytes) => `{"event_type":"a","data":{${members(bytes)}}}`,
  ],
  [
    'a message for a function',
    'POST',
    '/sources/test_function',
    (bytes) => `{"function":"function transform() {}","payload":[${fill(bytes, () => '{}')}]}`,
  ],
];

async function cpuMs(method: string, path: string, body: Buffer): Promise<number> {
  const before = process.cpuUsage();
  const answer = await api.call(method, project.path + path.replace(':id', endpointId), body);
  const { user } = process.cpuUsage(before);
  assert.ok(answer.status < 500, answer.text);
  return user / 1000;
}

for (const [what, method, path, of] of hostile)
  documents(`${method} ${path} works in linear time: ${what}`, async () => {
    const [small, large] = [100_000, 800_000].map((bytes) => Buffer.from(of(bytes)));
    const alone = await cpuMs(method, path, small!);
    let times = await cpuMs(method, path, large!);
    // Eight times the bytes take sixty times as long if the time is quadratic.
    const most = Math.max(400, 24 * alone);
    if (times > most) times = await cpuMs(method, path, large!);
    assert.ok(times < most, `${alone} ms for an eighth, ${times} ms for the whole`);
  });

documents('a document that nests too deep in a string is refused', async () => {
  const spec = openApi(webhook(nested(9000, '{}')));
  const path = `/convoy/api/v1${project.path}/event-types/import`;
  assert.is((await api.call('POST', path, { spec })).status, 400);
});

documents.run();
