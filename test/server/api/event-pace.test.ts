import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/until.js';
import { makeProject, startApi, type Api } from '../api.js';
import { httpSource } from '../ingest/http-source.js';

const pace = suite('server/api/event-pace');

let api: Api;
pace.before(async () => {
  api = await startApi({ file: { limits: { events_per_second: 20 } } });
});
pace.after(() => api.close());

const event = (text = '') => ({ event_type: 'order.paid', data: { text } });
const post = (at: { path: string }, body: object = event(), route = '/events') =>
  api.call('POST', `${at.path}${route}`, body);

pace(
  'limits.events_per_second: a project that sent more is answered with 429 for a while, and others are not',
  async () => {
    const [mine, other] = [await makeProject(api), await makeProject(api)];
    const events = Array.from({ length: 40 }, () => event());
    assert.is((await post(mine, { events }, '/events/batch')).body.data.created, 40);
    for (const [body, route] of [
      [event(), '/events'],
      [{ events }, '/events/batch'],
    ] as const) {
      const { status, body: answer, headers } = await post(mine, body, route);
      assert.equal(
        [status, answer.code, headers.get('retry-after')],
        [429, 'too_many_events', '1'],
      );
      assert.match(answer.message, 'more than 20 events');
    }
    assert.is((await post(other)).status, 201);
    assert.is((await api.call('GET', `${mine.path}/events`)).status, 200, 'it may read');
    await until('it may send again', async () => (await post(mine)).status === 201);
  },
);

pace('an event counts again for each 16 KB', async () => {
  const mine = await makeProject(api);
  for (let n = 0; n < 4; n++) await post(mine, event('x'.repeat(200_000)));
  assert.is((await post(mine)).status, 429);
});

pace(
  'the messages of HTTP sources count with all events that their functions make, and those that are quarantined too',
  async () => {
    const mine = await makeProject(api, { type: 'incoming' });
    const body_function = `function transform(n) { return typeof n === 'string' ? {} : Array.from({ length: n }, () => ({ event_type: 'a', data: {} })); }`;
    const source = await httpSource(api, mine, { body_function });
    const first = await source.post('40');
    assert.equal([first.status, first.body.data.events], [200, 40]);
    assert.equal(
      await source.post('1').then(({ status, headers }) => [status, headers.get('retry-after')]),
      [429, '1'],
    );
    assert.is((await post(mine)).status, 429, 'they count together with the events of the API');
    await until('it may send again', async () => (await source.post('1')).status === 200);
    await until(
      'it has a burst left',
      async () => (await source.post(JSON.stringify('x'.repeat(800_000)))).status === 202,
    );
    assert.is((await source.post('1')).status, 429);
  },
);

pace.run();
