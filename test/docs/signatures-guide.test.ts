import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { startAgent } from '@gateway/agent';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { activated, configOf, startApi } from '../server/api.js';
import { root } from '../meta/house.js';
import { endpoint } from '../support/endpoint.js';
import { tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';
import { python } from '../support/start/python.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks } from './page.js';

const PAGE = 'docs/guides/signatures.md';
const guide = suite('docs/signatures-guide');

/** Verifies each request of the standard input as a receiver with the page's code does. */
const RUN_PYTHON = `
import json, sys, types
import verify
given = json.load(sys.stdin)
for it in given["requests"]:
    request = types.SimpleNamespace(method="POST", url=it["url"], headers=it["headers"])
    body = it["body"].encode()
    if "webhook-signature" in it["headers"]:
        verify.event(it["headers"], body, given["public_key"])
    if "signature" in it["headers"]:
        verify.message(request, body, given["jwks"])
        try:
            verify.message(request, body + b" ", given["jwks"])
            sys.exit("a changed body was verified")
        except Exception as error:
            assert "digest" in str(error).lower(), error
`;

guide('every line runs, and its code verifies what the endpoint receives', async () => {
  for (const program of ['curl', 'jq']) installed(program, [program], `for the lines of ${PAGE}`);
  const file = { kv: { type: 'in-memory' }, delivery: { allowed_networks: ['127.0.0.0/8'] } };
  const [api, inbox] = await Promise.all([startApi({ file }), endpoint()]);
  const config = configOf(api.db, {
    ...file,
    server: { http: { port: 0, agent_port: 0, bind: '127.0.0.1' } },
  });
  const agent = await startAgent({
    config,
    plugins: await activated(),
    log: silentLog,
    kv: api.kv,
  });
  try {
    const { body: project } = await api.call('POST', '/projects', { name: 'Development' });
    const at = `/projects/${project.data.uid as string}`;
    const cwd = tempFolder('signatures');
    const blocks = blocksOf(PAGE);
    const run = (of: (section: string) => boolean, env = {}) =>
      runBlocks(
        blocks.filter(({ section }) => of(section)),
        {
          cwd,
          env: {
            GATEWAY_URL: api.url,
            GATEWAY_KEY: api.owner.api_key.key,
            PROJECT_ID: project.data.uid as string,
            ...env,
          },
          replaced: { 'https://example.com/webhooks': inbox.url },
          outputs: ['json'],
        },
      );
    const send = async (count: number) => {
      await api.call('POST', `${at}/events`, { endpoint_id: uid, event_type: 'a', data: { n: 1 } });
      await until('a delivery', () => inbox.requests.length === count);
      return inbox.requests.at(-1)!;
    };
    await run((section) => section === 'Sign with a key');
    const list = await api.call('GET', `${at}/endpoints`);
    const { uid } = list.body.data.content[0] as { uid: string };
    const keyed = await send(1);
    await run((section) => section === 'HTTP Message Signatures', { ENDPOINT_ID: uid });
    await until(
      'a message signature',
      async () => (await send(inbox.requests.length + 1)).headers['signature'] !== undefined,
    );
    const both = inbox.requests.at(-1)!;
    assert.is(both.headers['webhook-signature']?.split(' ').length, 2, 'keys overlap');
    assert.is(both.headers['x-gateway-signature'], undefined);

    const jwksUrl = `${api.url}/api/v1${at}/endpoints/${uid}/jwks.json`;
    const module = blocks.find(({ title }) => title === 'verify.mjs')!;
    fs.mkdirSync(path.join(cwd, 'node_modules/@gateway'), { recursive: true });
    fs.symlinkSync(
      path.join(root, 'packages/client'),
      path.join(cwd, 'node_modules/@gateway/client'),
    );
    fs.writeFileSync(path.join(cwd, 'verify.mjs'), module.text);
    process.env['JWKS_URL'] = jwksUrl;
    const receiver = (await import(pathToFileURL(path.join(cwd, 'verify.mjs')).href)) as {
      event(headers: object, body: Buffer): Promise<unknown>;
      message(url: string, headers: object, body: Buffer): Promise<unknown>;
    };
    assert.equal(await receiver.event(keyed.headers, keyed.body), { n: 1 });
    assert.equal(await receiver.event(both.headers, both.body), { n: 1 });
    assert.equal(await receiver.message(inbox.url, both.headers, both.body), { n: 1 });

    const jwks: unknown = await (await fetch(jwksUrl)).json();
    const shown = await api.call('GET', `${at}/endpoints/${uid}`);
    fs.writeFileSync(
      path.join(cwd, 'verify.py'),
      blocks.find(({ title }) => title === 'verify.py')!.text,
    );
    const requests = [keyed, both].map(({ headers, body }) => ({
      url: inbox.url,
      headers,
      body: body.toString(),
    }));
    execFileSync(python(['http-message-signatures==3.0.0']), ['-c', RUN_PYTHON], {
      cwd,
      env: { ...process.env, PYTHONPATH: cwd },
      input: JSON.stringify({
        requests,
        jwks,
        public_key: shown.body.data.secrets.at(-1).public_key as string,
      }),
    });

    await run((section) => section === 'Headers of an endpoint', { ENDPOINT_ID: uid });
    await until(
      'a static header',
      async () => (await send(inbox.requests.length + 1)).headers['x-tenant'] === 'north',
    );
    const named = inbox.requests.at(-1)!;
    assert.is(named.headers['x-api-key'], 'k-17');
    assert.ok(named.headers['svix-signature']);
    assert.is(named.headers['webhook-id'], undefined);
  } finally {
    await agent.close();
    await api.close();
    await inbox.close();
  }
});

guide.run();
