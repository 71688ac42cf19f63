import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { findEndpoint } from '#store/config/endpoints';
import { ENCRYPTION_KEY } from '../../../agent/records.js';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const endpoints = suite('server/routes/endpoints/endpoint-format');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
endpoints.before(async () => {
  api = await startApi({ file: { encryption_key: ENCRYPTION_KEY } });
  project = await makeProject(api);
});
endpoints.after(() => api.close());

const create = (fields: object) =>
  api.call('POST', `${project.path}/endpoints`, { name: 'On call', ...fields });
const put = (uid: string, fields: object) =>
  api.call('PUT', `${project.path}/endpoints/${uid}`, fields);

/** The URL that requests go to, if it is sealed. */
async function secretUrl(uid: string): Promise<string | undefined> {
  const { authentication: of } = (await findEndpoint(api.db.knex, project.id, uid))!;
  if (of?.type !== 'secret_url') return undefined;
  assert.match(of.secret_url.url, /^sealed:/);
  const { open } = sealer(ENCRYPTION_KEY);
  return open(of.secret_url.url, ['endpoints', uid, 'authentication']);
}

endpoints(
  'the URL that Slack gives is sealed and masked, and kept when the mask comes back',
  async () => {
    const url = 'https://hooks.slack.com/services/T1/B1/secret';
    const made = await create({ url, format: 'slack' });
    assert.is(made.status, 201);
    assert.not.match(made.text, 'services');
    const { uid, authentication, ...shown } = made.body.data;
    assert.equal([shown.url, shown.format], ['https://hooks.slack.com', 'slack']);
    assert.is(await secretUrl(uid), url);

    const kept = await put(uid, { name: 'Ops', url: shown.url, authentication });
    assert.is(kept.status, 200);
    assert.is(await secretUrl(uid), url);
    assert.equal(mistakes(await put(uid, { url: 'https://evil.example.com' })), [
      'authentication.secret_url is not sent to another origin than https://hooks.slack.com: url changes; give the secret again, or null as authentication to remove it',
    ]);
    const other = 'https://chat.example.com/hooks/1';
    const moved = await put(uid, { url: other, authentication });
    assert.is(moved.body.data.url, 'https://chat.example.com');
    assert.is(await secretUrl(uid), other);
  },
);

endpoints('other formats keep their URL, and an unknown format is refused', async () => {
  const authentication = { type: 'bearer', bearer: { token: 'R1' } };
  const url = 'https://events.pagerduty.com/v2/enqueue';
  const made = await create({ url, format: 'pagerduty', authentication });
  assert.equal([made.body.data.url, await secretUrl(made.body.data.uid)], [url, undefined]);
  const plain = await create({ url: 'https://example.com/hooks' });
  assert.equal([plain.body.data.format, plain.body.data.url], [null, 'https://example.com/hooks']);
  assert.is((await create({ url, format: 'fax' })).status, 422);
  const wrong = { type: 'secret_url', secret_url: { url: 'ftp://example.com' } };
  assert.equal(mistakes(await create({ url, authentication: wrong })), [
    'authentication.secret_url.url must begin with https:// or http://',
  ]);
});

endpoints.run();
