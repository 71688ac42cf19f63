import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeProject, startApi } from '../api.js';

const preconditions = suite('server/api/preconditions');

const api = await startApi();
preconditions.after(() => api.close());
const { path } = await makeProject(api);

async function endpoint(): Promise<{ at: string; etag: string }> {
  const { body } = await api.call('POST', `${path}/endpoints`, {
    name: 'shop',
    url: 'https://example.com/hooks',
  });
  const at = `${path}/endpoints/${body.data.uid}`;
  const { headers } = await api.call('GET', at);
  return { at, etag: headers.get('etag')! };
}

const edit = (at: string, etag: string, name: string) =>
  api.call('PUT', at, { name }, { headers: { 'if-match': etag } });

preconditions(
  'of two people who edit what they have read, the second is told that it has changed',
  async () => {
    const { at, etag } = await endpoint();
    const first = await edit(at, etag, 'first');
    assert.is(first.status, 200);
    const second = await edit(at, etag, 'second');
    assert.equal([second.status, second.body.code], [412, 'stale']);
    assert.is((await api.call('GET', at)).body.data.name, 'first');
    assert.is((await edit(at, first.headers.get('etag')!, 'second')).status, 200);
  },
);

preconditions('of ten edits at once with one tag a single one is made', async () => {
  const { at, etag } = await endpoint();
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => edit(at, etag, `edit ${n}`)),
  );
  assert.equal(answers.map(({ status }) => status).sort(), [200, ...Array<number>(9).fill(412)]);
});

preconditions(
  'a deletion has the condition as well, a list of tags and * do, and without one nothing is asked',
  async () => {
    const { at, etag } = await endpoint();
    const remove = (tags: string) =>
      api.call('DELETE', at, undefined, { headers: { 'if-match': tags } });
    assert.is((await edit(at, `"x", ${etag}`, 'changed')).status, 200);
    assert.is((await remove(etag)).status, 412);
    assert.is((await edit(at, '*', 'again')).status, 200);
    assert.is((await api.call('PUT', at, { name: 'unconditional' })).status, 200);
    assert.is((await remove('*')).status, 200);
    assert.is((await remove('*')).status, 404);
  },
);

preconditions(
  'what can be edited has the tag of its last change, and nothing else has one',
  async () => {
    const project = await api.call('GET', path);
    assert.is(project.headers.get('etag'), `"${project.body.data.updated_at}"`);
    for (const other of [`${path}/endpoints`, `${path}/summary`])
      assert.is((await api.call('GET', other)).headers.get('etag'), null);
  },
);

preconditions.run();
