// deadline: 240 s
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../support/gateway.js';
import { installGateway } from '../support/installed.js';
import { production } from '../support/production.js';

const extras = suite('release/extras');

const bin = await installGateway();
for (const name of ['archive', 'convoy', 'dev', 'plugin-conformance'])
  fs.rmSync(path.join(path.dirname(bin), '../..', name), { recursive: true });

const env = {
  GATEWAY_ENCRYPTION_KEY: crypto.randomBytes(32).toString('base64'),
  GATEWAY_ARCHIVE_URL: '/srv/archive',
};

const NEEDS = {
  'config check': 'archive.url needs the package @gateway/archive',
  agent: 'archive.url needs the package @gateway/archive',
  'archive list': 'archive.url needs the package @gateway/archive',
  'dev --once': 'gateway dev needs the package @gateway/dev',
  'plugins create source mine':
    'gateway plugins create needs the package @gateway/plugin-conformance',
  'plugins test kafka': 'gateway plugins test needs the package @gateway/plugin-conformance',
};

for (const [command, sentence] of Object.entries(NEEDS))
  extras(`gateway ${command} says which package it lacks, and how to install it`, async () => {
    const { code, stderr } = await runGateway(command.split(' '), { bin, env });
    assert.is(code, 1, stderr);
    assert.match(stderr, `${sentence}, which is not installed`);
    assert.match(stderr, /run `npm install @gateway\/[a-z-]+@\d+\.\d+\.\d+`/);
  });

extras('a server says so at the path of a dialect that it lacks', async () => {
  const { serverPort, close } = await production({ bin, agents: 0 });
  try {
    const answer = await fetch(`http://127.0.0.1:${serverPort}/convoy/api/v1/projects`);
    assert.is(answer.status, 404);
    const { fix } = (await answer.json()) as { fix: string };
    assert.match(
      fix,
      /\/convoy needs the package @gateway\/convoy.*\nrun `npm install @gateway\/convoy@/,
    );
  } finally {
    await close();
  }
});

extras('what needs none of them works', async () => {
  const { GATEWAY_ENCRYPTION_KEY } = env;
  const checked = await runGateway(['config', 'check'], { bin, env: { GATEWAY_ENCRYPTION_KEY } });
  assert.is(checked.code, 0, checked.stderr);
  const help = await runGateway(['help', 'dev'], { bin });
  assert.match(help.stdout, '--once');
});

extras.run();
