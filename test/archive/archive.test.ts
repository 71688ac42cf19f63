import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import type { ArchivedEvent } from '#store/retention/archive';
import { keyOf } from '#archive/manifest';
import type { ObjectStore } from '#archive/object-store';
import { openObjectStore } from '#archive/open-store';
import { listArchive, readArchivedDay } from '#archive/read-archive';
import { writeDay } from '#archive/write-day';
import { bucket } from '../support/bucket.js';
import { endpoint } from '../support/endpoint.js';
import { freePort } from '../support/ports.js';
import { tempFolder } from '../support/start/keep.js';

const archive = suite('archive/archive');

const s3 = await bucket();
archive.after(() => s3.close());
const DAY = '2026-01-31';
const DAY_MS = Date.parse(DAY);
const EVERY_ID = { firstId: '0', lastId: 'g' };

const STORES = {
  'a folder': () => openObjectStore({ url: tempFolder('archive'), path_style: false }),
  'a bucket': () => openObjectStore(s3.settings),
};

function archivedEvent(n: number, fields: Partial<ArchivedEvent> = {}): ArchivedEvent {
  return {
    id: newId(DAY_MS + n),
    occurred_at: new Date(DAY_MS + n),
    accepted_at: new Date(DAY_MS + n + 5),
    source_id: newId(),
    coordinates: `orders/0/${n}`,
    event_type: 'order.paid',
    message_type: 'single',
    endpoint_id: null,
    owner_id: null,
    idempotency_key: null,
    status: 'processed',
    outcome: 'routed',
    headers: '{"x-a":"b"}',
    message: null,
    notes: null,
    data: `{"n":${n}}`,
    deliveries: '[]',
    ...fields,
  };
}

// Texts that parsing and writing as JSON would change.
const EXACT = [
  '{"n": 12345678901234567890.000000000000000001, "n": 1e400}',
  ' [ "\\ud800", "é", "\u{1f980}", "\\u0000" ]\n',
  'null',
  JSON.stringify('x'.repeat(700_000)),
];

interface Day {
  readonly store: ObjectStore;
  readonly projectId: string;
}

const write = (
  { store, projectId }: Day,
  pages: readonly (readonly ArchivedEvent[])[],
  sinces: (Date | null)[] = [],
) =>
  writeDay(store, {
    projectId,
    day: DAY,
    writtenBefore: new Date(DAY_MS + 86_400_000),
    async *pages(since) {
      sinces.push(since);
      yield* await Promise.resolve(pages);
    },
  });

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function manifests({ store, projectId }: Day) {
  return all(listArchive(store, { projectId }));
}

async function read(day: Day): Promise<ArchivedEvent[]> {
  const [manifest] = await manifests(day);
  return (await all(readArchivedDay(day.store, manifest!, EVERY_ID))).flat();
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => assert.unreachable('it was not refused'),
    (it: unknown) => it,
  );
  assert.ok(isGatewayError(error), String(error));
  return `${error.code}: ${error.message}`;
}

for (const [name, open] of Object.entries(STORES)) {
  archive(`in ${name}, every value comes back as it was`, async () => {
    const day = { store: await open(), projectId: newId() };
    const events = [
      ...EXACT.map((data, n) => archivedEvent(n, { data })),
      archivedEvent(4, {
        source_id: null,
        endpoint_id: 'not an id',
        owner_id: 'é',
        idempotency_key: 'key',
        outcome: 'no_subscription',
        status: 'failed',
        message_type: 'fanout',
        message: '{"key":"k"}',
        notes: '["note"]',
        deliveries: `[{"id": "${newId()}", "status": "failure", "http_status": null}]`,
      }),
    ];
    await write(day, [events.slice(0, 2), events.slice(2)]);
    assert.equal(await read(day), events);
    const [manifest] = await manifests(day);
    assert.equal(
      [manifest!.project_id, manifest!.day, manifest!.events, manifest!.parts.length],
      [day.projectId, DAY, 5, 1],
    );
    const [part] = manifest!.parts;
    const bytes = await day.store.get(keyOf({ ...day, day: DAY }, part!.file));
    assert.is(bytes!.length, part!.bytes);
    day.store.close();
  });

  archive(
    `in ${name}, days are listed by project and range, a second write adds parts`,
    async () => {
      const day = { store: await open(), projectId: newId() };
      assert.equal(await manifests(day), [], 'nothing is there yet');
      const events = [archivedEvent(1), archivedEvent(2)];
      const sinces: (Date | null)[] = [];
      await write(day, [[events[0]!]], sinces);
      await write(day, [], sinces);
      await write(day, [[events[1]!]], sinces);
      const before = new Date(DAY_MS + 86_400_000);
      assert.equal(sinces, [null, before, before]);
      assert.equal(await read(day), events);
      const listed = async (from?: string, to?: string) =>
        (await all(listArchive(day.store, { from, to })))
          .filter(({ project_id: id }) => id === day.projectId)
          .map(({ parts }) => parts.map(({ file }) => file));
      assert.equal(await listed(), [['events-0001.parquet', 'events-0002.parquet']]);
      assert.is((await listed(DAY, DAY)).length, 1);
      assert.equal([await listed('2026-02-01'), await listed(undefined, '2026-01-30')], [[], []]);
      day.store.close();
    },
  );

  archive(`in ${name}, a day that ends between part and manifest is written again`, async () => {
    const store = await open();
    const projectId = newId();
    const dying: ObjectStore = {
      place: store.place,
      get: (key) => store.get(key),
      folders: (folder) => store.folders(folder),
      close: () => undefined,
      put: (key, body) =>
        key.endsWith('_manifest.json') ? Promise.reject(new Error('killed')) : store.put(key, body),
    };
    const events = [archivedEvent(1), archivedEvent(2)];
    const ended = await write({ store: dying, projectId }, [events]).catch(String);
    assert.is(ended, 'Error: killed');
    assert.equal(await manifests({ store, projectId }), [], 'it is not listed');
    await write({ store, projectId }, [events]);
    assert.equal(await read({ store, projectId }), events);
    store.close();
  });

  archive(`in ${name}, a part or manifest that was changed is refused`, async () => {
    const day = { store: await open(), projectId: newId() };
    await write(day, [[archivedEvent(1)]]);
    const [manifest] = await manifests(day);
    const key = (file: string) => keyOf({ ...day, day: DAY }, file);
    await day.store.put(key('events-0001.parquet'), Buffer.from('PAR1'));
    assert.match(await refusal(read(day)), /^archive_broken: .*its SHA-256 is not the one/);
    const change = (fields: object) =>
      day.store.put(key('_manifest.json'), Buffer.from(JSON.stringify({ ...manifest, ...fields })));
    await change({ parts: [{ ...manifest!.parts[0], file: '../secret.parquet' }] });
    assert.match(await refusal(read(day)), /^archive_broken: .*not the manifest of this day/);
    await change({ project_id: newId() });
    assert.match(await refusal(read(day)), /^archive_broken/);
    await change({ version: 2 });
    assert.match(await refusal(read(day)), /^archive_broken: .*newer version/);
    await day.store.put(key('_manifest.json'), Buffer.from('{'));
    assert.match(await refusal(read(day)), /^archive_broken/);
    day.store.close();
  });
}

archive('files are only for this user, and nothing is left of a write that fails', async () => {
  const folder = tempFolder('archive');
  const day = {
    store: await openObjectStore({ url: folder, path_style: false }),
    projectId: newId(),
  };
  await write(day, [[archivedEvent(1)]]);
  const below = path.join(folder, path.dirname(keyOf({ ...day, day: DAY }, 'x')));
  assert.equal(fs.readdirSync(below).sort(), ['_manifest.json', 'events-0001.parquet']);
  for (const name of fs.readdirSync(below))
    assert.is(fs.statSync(path.join(below, name)).mode & 0o777, 0o600);
  assert.is(fs.statSync(below).mode & 0o777, 0o700);
  fs.mkdirSync(path.join(below, 'taken'));
  assert.match(
    await refusal(day.store.put(keyOf({ ...day, day: DAY }, 'taken'), Buffer.from('x'))),
    /^archive_unavailable/,
  );
  assert.equal(fs.readdirSync(below).sort(), ['_manifest.json', 'events-0001.parquet', 'taken']);
});

archive('what a killed process left is removed by the next write of the day', async () => {
  const folder = tempFolder('archive');
  const store = await openObjectStore({ url: folder, path_style: false });
  const day = { store, projectId: newId() };
  const below = path.join(folder, path.dirname(keyOf({ ...day, day: DAY }, 'x')));
  fs.mkdirSync(below, { recursive: true });
  for (const name of ['events-0001.parquet.1.tmp', 'events-0009.parquet.2.tmp'])
    fs.writeFileSync(path.join(below, name), 'half');
  await write(day, [[archivedEvent(1)]]);
  assert.equal(fs.readdirSync(below).sort(), ['_manifest.json', 'events-0001.parquet']);
});

archive('a read-only folder is told with its fix, also where folders are missing', () => {
  const folder = tempFolder('read-only');
  const script = `
    const { openObjectStore } = await import('${import.meta.resolve('#archive/open-store')}');
    const store = await openObjectStore({ url: '${folder}/a/b', path_style: false });
    await store.put('c/d/e', Buffer.from('x')).catch((error) => console.log(String(error)));`;
  const mounted = spawnSync(
    'unshare',
    [
      '-rm',
      'sh',
      '-c',
      `mount -t tmpfs -o ro none ${folder} && exec "$0" "$@"`,
      process.execPath,
      '--input-type=module',
      '-e',
      script,
    ],
    { encoding: 'utf8', cwd: process.cwd() },
  );
  assert.is(mounted.stderr, '');
  assert.match(
    mounted.stdout,
    `the archive ${folder}/a/b cannot be used: the file system is read-only for this process\nmount it writable`,
  );
  assert.match(mounted.stdout, 'StateDirectory');
});

archive('each refusal of a bucket is told with its own fix', async () => {
  const server = await endpoint();
  const store = await openObjectStore({ ...s3.settings, endpoint: server.url });
  const fixes: readonly (readonly [code: string, message: string, fix: RegExp])[] = [
    ['AccessDenied', 'Access Denied', /allow .*s3:PutObject.*archive\.sse/],
    ['AccessDenied', 'not authorized to perform: kms:GenerateDataKey', /archive\.sse_kms_key_id/],
    ['SignatureDoesNotMatch', 'The signature does not match', /secret_access_key/],
    ['AuthorizationHeaderMalformed', 'the region is wrong', /archive\.region/],
    ['NoSuchBucket', 'The bucket does not exist', /archive\.url/],
    ['RequestTimeTooSkewed', 'The difference is too large', /clock/],
  ];
  try {
    for (const [code, message, fix] of fixes) {
      server.answer({
        status: 403,
        headers: { 'content-type': 'application/xml' },
        body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`,
      });
      const error = await store.put('a', Buffer.from('b')).catch((it: unknown) => it);
      assert.ok(isGatewayError(error, 'archive_unavailable'), String(error));
      assert.match(error.message, code);
      assert.match(error.fix, fix);
    }
  } finally {
    store.close();
    await server.close();
  }
});

archive('a store that cannot be used says where it is and why', async () => {
  const of = async (settings: object) => {
    const store = await openObjectStore({ ...s3.settings, ...settings });
    try {
      return await refusal(store.put('a', Buffer.from('b')));
    } finally {
      store.close();
    }
  };
  const nowhere = await of({ endpoint: `http://127.0.0.1:${await freePort()}` });
  assert.is(
    nowhere,
    `archive_unavailable: the archive ${s3.settings.url} cannot be used: nothing listens there`,
  );
  assert.match(await of({ url: 's3://no-such-bucket' }), /NoSuchBucket/);
  const file = path.join(tempFolder('archive'), 'file');
  fs.writeFileSync(file, '');
  assert.match(await of({ url: file }), new RegExp(`^archive_unavailable: the archive ${file}`));
});

archive(
  'requests are signed with the key for the region, and name the bucket in the path',
  async () => {
    const server = await endpoint();
    const store = await openObjectStore({
      url: 's3://acme/events',
      endpoint: server.url,
      region: 'eu-south-2',
      path_style: true,
      access_key_id: 'AKIAOFTHETEST',
      secret_access_key: 'secret of the test',
      sse: 'aws:kms',
      sse_kms_key_id: 'key-1',
    });
    try {
      await store.put('a/b', Buffer.from('c'));
      const [request] = await server.received(1);
      assert.match(
        request!.headers['authorization']!,
        /Credential=AKIAOFTHETEST\/\d{8}\/eu-south-2\/s3\/aws4_request/,
      );
      assert.match(request!.url, /^\/acme\/events\/a\/b\b/);
      assert.is(request!.body.toString(), 'c');
      assert.is(request!.headers['content-md5'], createHash('md5').update('c').digest('base64'));
      assert.is(request!.headers['x-amz-server-side-encryption'], 'aws:kms');
      assert.is(request!.headers['x-amz-server-side-encryption-aws-kms-key-id'], 'key-1');
      assert.is(
        request!.headers['x-amz-content-sha256'],
        createHash('sha256').update('c').digest('hex'),
      );
    } finally {
      store.close();
      await server.close();
    }
  },
);

archive('a large day has parts of bounded size', async () => {
  const day = { store: await openObjectStore(s3.settings), projectId: newId() };
  const page = (from: number) => Array.from({ length: 500 }, (_, n) => archivedEvent(from + n));
  await write(
    day,
    Array.from({ length: 101 }, (_, k) => page(k * 500)),
  );
  const [manifest] = await manifests(day);
  assert.equal(
    manifest!.parts.map(({ events }) => events),
    [50_000, 500],
  );
  assert.is(manifest!.events, 50_500);
  const { first_id: firstId } = manifest!.parts[1]!;
  const found = await all(readArchivedDay(day.store, manifest!, { firstId, lastId: firstId }));
  assert.equal(
    found.flat().map(({ id }) => id),
    [firstId],
  );
  day.store.close();
});

archive.run();
