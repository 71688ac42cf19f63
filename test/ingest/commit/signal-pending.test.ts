import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { signalPending } from '#ingest/commit/signal-pending';
import { MemoryKv } from '#store/kv/memory-kv';
import { DEFAULT_SHARD } from '#store/shards/shards';

const signals = suite('ingest/commit/signal-pending');

const events = [newId(), newId()].map((id) => ({ projectId: newId(), id }));

signals('the name of each event is pushed, and of none nothing', async () => {
  const kv = new MemoryKv();
  const { log, lines } = warnings();
  await signalPending({ kv, log, shard: DEFAULT_SHARD }, []);
  await signalPending({ kv, log, shard: DEFAULT_SHARD }, events);
  const pulled = await kv.queue('create-event').pull(10, AbortSignal.timeout(5_000));
  assert.equal(
    pulled.map(({ text }) => text.split(' ').slice(0, 2)),
    events.map(({ projectId, id }) => [projectId, id]),
  );
  assert.equal(lines, []);
});

signals('each shard has its own queue', async () => {
  const kv = new MemoryKv();
  const { log } = warnings();
  await signalPending({ kv, log, shard: 'second' }, events);
  assert.is(await kv.queue('create-event').depth(), 0);
  assert.is(await kv.queue('create-event:second').depth(), 2);
});

signals('KV that is away is one warning with the number of events, and no error', async () => {
  const error = new Error('gone');
  const kv = { queue: () => ({ push: () => Promise.reject(error) }) } as never;
  const { log, lines } = warnings();
  await signalPending({ kv, log, shard: DEFAULT_SHARD }, []);
  await signalPending({ kv, log, shard: DEFAULT_SHARD }, events);
  assert.equal(lines, [{ error, events: 2 }]);
});

signals.run();

function warnings() {
  const lines: object[] = [];
  return { lines, log: { warn: (fields: object) => void lines.push(fields) } };
}
