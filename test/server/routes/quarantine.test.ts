import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventId, newId } from '#core/events/ids';
import { quarantineMessages } from '#store/quarantine/messages';
import { makeSource } from '../../store/made.js';
import { makeProject, startApi, type Api } from '../api.js';

const quarantine = suite('server/routes/quarantine');

let api: Api;
quarantine.before(async () => {
  api = await startApi();
});
quarantine.after(() => api.close());

async function setUp() {
  const { path, id: projectId } = await makeProject(api);
  const sourceId = await makeSource(api.db, projectId);
  const bodies = [Buffer.from('{"half": "é'), Buffer.from([0xff, 0xfe, 0x00])];
  const rows = bodies.map((raw, n) => ({
    projectId,
    id: eventId(sourceId, `t/0/${n}`, 1000 + n),
    sourceId,
    occurredAtMs: 1000 + n,
    coordinates: `t/0/${n}`,
    code: n === 0 ? 'not_json' : 'not_utf8',
    reason: 'The message is not JSON.',
    headers: '{"x-a":"b"}',
    raw,
  }));
  await quarantineMessages(api.db.pool, rows);
  const [text, binary] = rows as [(typeof rows)[0], (typeof rows)[0]];
  return { path: `${path}/quarantine`, text, binary };
}

quarantine('a message is shown with its reason and its bytes, as text or in base64', async () => {
  const { path, text, binary } = await setUp();
  const { data } = (await api.call('GET', `${path}/${text.id}`)).body;
  assert.equal(
    [
      data.uid,
      data.code,
      data.reason,
      data.coordinates,
      data.headers,
      data.raw,
      data.raw_encoding,
      data.status,
    ],
    [
      text.id,
      'not_json',
      'The message is not JSON.',
      't/0/0',
      { 'x-a': 'b' },
      '{"half": "é',
      'utf8',
      'quarantined',
    ],
  );
  const other = (await api.call('GET', `${path}/${binary.id}`)).body.data;
  assert.equal([other.raw, other.raw_encoding, other.raw_bytes], ['//4A', 'base64', 3]);
});

quarantine('messages are listed without their bytes', async () => {
  const { path, text, binary } = await setUp();
  const { content } = (await api.call('GET', path)).body.data;
  assert.equal(
    content.map((it: { uid: string; raw?: string }) => [it.uid, it.raw]),
    [
      [binary.id, undefined],
      [text.id, undefined],
    ],
  );
  assert.is((await api.call('GET', `${path}?code=not_utf8`)).body.data.content.length, 1);
  assert.is((await api.call('GET', `${path}?status=discarded`)).body.data.content.length, 0);
});

quarantine('a message is discarded once', async () => {
  const { path, text } = await setUp();
  const { status, body } = await api.call('PUT', `${path}/${text.id}/discard`);
  assert.equal([status, body.data.status], [200, 'discarded']);
  const again = await api.call('PUT', `${path}/${text.id}/discard`);
  assert.equal([again.status, again.body.message], [409, 'the message is already discarded']);
  assert.is((await api.call('PUT', `${path}/${newId()}/discard`)).status, 404);
});

quarantine(
  'a message is edited while it is quarantined, and the bytes that came are kept',
  async () => {
    const { path, text } = await setUp();
    const edited = await api.call('PUT', `${path}/${text.id}`, {
      raw: '{"event_type":"a","data":{}}',
    });
    const { raw, original_raw: original, raw_bytes: bytes, status } = edited.body.data;
    assert.equal(
      [edited.status, raw, original, bytes, status],
      [200, '{"event_type":"a","data":{}}', '{"half": "é', 28, 'quarantined'],
    );
    const binary = (
      await api.call('PUT', `${path}/${text.id}`, { raw: '/wA=', raw_encoding: 'base64' })
    ).body.data;
    assert.equal([binary.raw, binary.raw_encoding, binary.raw_bytes], ['/wA=', 'base64', 2]);
    const wrong = await api.call('PUT', `${path}/${text.id}`, {
      raw: '{"a":1}',
      raw_encoding: 'base64',
    });
    assert.equal([wrong.status, wrong.body.message], [422, 'raw: is not base64']);
    await api.call('PUT', `${path}/${text.id}/discard`);
    const late = await api.call('PUT', `${path}/${text.id}`, { raw: '{}' });
    assert.equal([late.status, late.body.message], [409, 'the message is already discarded']);
  },
);

quarantine.run();
