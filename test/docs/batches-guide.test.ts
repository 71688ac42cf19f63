import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import { root } from '../meta/house.js';
import { freePort } from '../support/ports.js';
import { production, subscribed } from '../support/production.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks } from './page.js';

const guide = suite('docs/batches-guide');

guide('the receiver of docs/guides/batches.md settles each event of a batch', async () => {
  const gateway = await production({ agents: 1 });
  const cwd = gateway.run.folder;
  const port = await freePort();
  const { uid, secret } = await subscribed(gateway, `http://127.0.0.1:${port}`);
  const blocks = blocksOf('docs/guides/batches.md');
  const { text } = blocks.find(({ title }) => title === 'receiver.mjs')!;
  fs.writeFileSync(path.join(cwd, 'receiver.mjs'), text);
  fs.mkdirSync(path.join(cwd, 'node_modules/@gateway'), { recursive: true });
  fs.symlinkSync(
    path.join(root, 'packages/client'),
    path.join(cwd, 'node_modules/@gateway/client'),
  );
  const receiver = spawn(process.execPath, ['receiver.mjs'], {
    cwd,
    env: { PORT: String(port), WEBHOOK_SECRET: secret },
    stdio: 'inherit',
  });
  try {
    const run = (section: string, env = {}) =>
      runBlocks(
        blocks.filter((block) => block.section === section),
        {
          cwd,
          env: {
            GATEWAY_URL: `http://127.0.0.1:${gateway.serverPort}`,
            GATEWAY_KEY: gateway.apiKey,
            PROJECT_ID: gateway.projectId,
            ENDPOINT_ID: uid,
            ...env,
          },
          outputs: ['json', 'text'],
        },
      );
    await run('Turn batches on');
    // Agents read the change within two seconds.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await gateway.api('POST', '/events/batch', {
      events: [1, -1, 2].map((amount) => ({ event_type: 'order.paid', data: { amount } })),
    });
    const failed = async () =>
      gateway.shard.rows<{ id: string; status: string }>(
        `select id, status from event_deliveries order by status = 'failure' desc`,
      );
    await until('all to be settled', async () => {
      const rows = await failed();
      return rows.map(({ status }) => status).join() === 'failure,success,success';
    });
    await run('What is recorded', { DELIVERY_ID: (await failed())[0]!.id });
  } finally {
    receiver.kill();
    await gateway.close();
  }
});

guide.run();
