import fs from 'node:fs';
import path from 'node:path';
import { startAgent } from '@gateway/agent';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { activated, configOf, startApi } from '../server/api.js';
import { connectionOf } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';
import { blocksOf, runBlocks } from './page.js';

const guide = suite('docs/api-guide');

guide('every line of docs/guides/api.md runs, and prints what the page says', async () => {
  for (const program of ['curl', 'jq'])
    installed(program, [program], 'for the lines of docs/guides/api.md');
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
    const { user, password, api_key } = api.owner;
    const { body } = await api.call('POST', '/projects', { name: 'Development' });
    const cwd = tempFolder('guide');
    const write = (name: string, content: object) =>
      fs.writeFileSync(path.join(cwd, name), JSON.stringify(content));
    fs.mkdirSync(path.join(cwd, '.gateway'));
    write('.gateway/dev.json', { api_key: api_key.key, project_id: body.data.uid as string });
    write('gateway.json', { ...file, database: connectionOf(api.db.url) });

    const blocks = blocksOf('docs/guides/api.md');
    assert.ok(blocks.length >= 30, `the page has only ${blocks.length} blocks`);
    await runBlocks(blocks, {
      cwd,
      env: {},
      replaced: {
        'http://127.0.0.1:5005': api.url,
        'https://example.com/webhooks': inbox.url,
        'you@example.com': user.email,
        'your password': password,
      },
      outputs: ['json', 'text'],
    });
    assert.ok(inbox.requests.length >= 6, 'what was delivered, and sent again');
  } finally {
    await agent.close();
    await api.close();
    await inbox.close();
  }
});

guide.run();
