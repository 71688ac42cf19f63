import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { countRequests } from '#agent/flow-control/breaker-record';
import { decodeSignal, encodeSignal } from '#store/events/events';
import { readBreakers, resetBreaker } from '#store/kv/circuit-breakers';
import { MemoryKv } from '#store/kv/memory-kv';
import { readSourceLag, writeSourceLag } from '#store/kv/source-lags';
import { readSourceStates, writeSourceState } from '#store/kv/source-states';
import { decodeValue, encodeValue, KV_VERSIONS, type KvKind } from '#store/kv/versions';

const versions = suite('store/kv/versions');

/**
 * The fields that each version writes, as `path:type`. A changed field requires a new version:
 * raise it in KV_VERSIONS, and list the new fields here.
 */
const shapes: Readonly<
  Record<Exclude<KvKind, 'record'>, readonly [version: number, fields: string]>
> = {
  breaker: [
    1,
    'failures:number forget_ms:number project_id:string requests:number since_ms:number state:string trips:number until_ms:number v:number',
  ],
  'source-lag': [
    1,
    'messages:number partitionCount:number partitions.0.end:string partitions.0.messages:number partitions.0.partition:string partitions.0.position:string reportedAtMs:number v:number',
  ],
  'source-state': [
    2,
    'messages:number reason:string reportedAtMs:number sinceMs:number state:string v:number',
  ],
  signal: [1, '0:string 1:string 2:string'],
};

const fieldsOf = (value: unknown, path: readonly string[] = []): string[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, inner]) => fieldsOf(inner, [...path, name]))
    : [`${path.join('.')}:${typeof value}`];

const policy = {
  threshold: 0.5,
  minimumRequests: 10,
  windowMs: 60_000,
  openMs: 1_000,
  openMaxMs: 60_000,
};
const breaker = () =>
  countRequests(undefined, { projectId: 'p', requests: 20, failures: 20 }, policy, 1_000);
const names = { lag: 'source-lag:s:1', state: 'source-state:{p}:s:1' };

/** A KV with one value of each kind, as written by this release. */
async function written(): Promise<MemoryKv> {
  const kv = new MemoryKv();
  await writeSourceLag(kv, { sourceId: 's', agentId: 1 }, [
    { partition: '0', messages: 1, position: '1', end: '2' },
  ]);
  await writeSourceState(
    kv,
    { projectId: 'p', sourceId: 's', agentId: 1 },
    { state: 'failing', reason: 'No.', sinceMs: 1, messages: 1 },
  );
  await kv.map().change([{ field: 'e', from: undefined, to: encodeValue('breaker', breaker()) }]);
  return kv;
}

const read = async (kv: MemoryKv) => [
  await readSourceLag(kv, 's', [1]),
  (await readSourceStates(kv, { projectId: 'p', sourceIds: ['s'], agentIds: [1] })).get('s'),
  (await readBreakers(kv)).get('e'),
];

versions('the shape of each value is that of its version', async () => {
  const kv = await written();
  const texts = {
    'source-lag': await kv.get(names.lag),
    'source-state': await kv.get(names.state),
    breaker: (await kv.map().all()).entries.get('e'),
  };
  const found = Object.fromEntries(
    Object.entries(texts).map(([kind, text]) => [
      kind,
      [KV_VERSIONS[kind as KvKind], fieldsOf(JSON.parse(text!)).sort().join(' ')],
    ]),
  );
  const signal = fieldsOf(encodeSignal({ projectId: newId(), id: newId() }).split(' ')).join(' ');
  assert.equal({ ...found, signal: [KV_VERSIONS.signal, signal] }, shapes);
});

versions('a value of another version, or none at all, reads as no value', async () => {
  for (const text of ['{"v":2,"state":"melted"}', '{', 'null', '"x"', '']) {
    const kv = await written();
    assert.ok((await read(kv)).every((value) => value !== undefined && !('v' in value)));
    for (const name of Object.values(names)) await kv.set(name, text, { ttlMs: 60_000 });
    const from = (await kv.map().all()).entries.get('e');
    await kv.map().change([{ field: 'e', from, to: text }]);
    assert.equal(await read(kv), [undefined, undefined, undefined], text);
    assert.is(await resetBreaker(kv, 'e'), true, 'and is removed by a reset');
  }
});

versions('values of releases before versions read as before', () => {
  assert.equal(decodeValue('breaker', JSON.stringify(breaker())), breaker());
  const ref = { projectId: newId(), id: newId() };
  assert.equal(decodeSignal(`${ref.projectId} ${ref.id}`), decodeSignal(encodeSignal(ref)));
  assert.equal(
    encodeSignal(ref).split(' ').slice(0, 2),
    [ref.projectId, ref.id],
    'and they read what is written now',
  );
  assert.is(decodeSignal(`${ref.projectId} ${ref.id} 2`), null);
});

versions.run();
