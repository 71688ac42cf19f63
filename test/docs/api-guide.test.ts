import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startAgent } from '@gateway/agent';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { activated, configOf, startApi } from '../server/api.js';
import { endpoint } from '../support/endpoint.js';
import { tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';

const guide = suite('docs/api-guide');
const page = fs.readFileSync(
  fileURLToPath(new URL('../../docs/guides/api.md', import.meta.url)),
  'utf8',
);

/** The commands of the page, each with its documented output. */
function steps(): { commands: string; shown: string | undefined }[] {
  const blocks = [...page.matchAll(/^```(sh|json|text)\n([^]*?)^```$/gm)].map(
    ([, kind, text = '']) => ({ kind, text }),
  );
  return blocks.flatMap(({ kind, text }, at) => {
    const next = blocks[at + 1];
    return kind === 'sh'
      ? [{ commands: text, shown: next && next.kind !== 'sh' ? next.text : undefined }]
      : [];
  });
}

const END = '-- end of a block --';

/**
 * Runs the blocks in one bash, as a reader does in one terminal. It exits at the first failing
 * line.
 */
function run(
  blocks: readonly string[],
  env: Record<string, string>,
): Promise<{ code: number | null; printed: string[]; errors: string }> {
  const script = ['set -eo pipefail', ...blocks.map((text) => `${text}\necho; echo '${END}'`)].join(
    '\n',
  );
  const child = spawn('bash', ['--norc', '--noprofile', '-c', script], {
    cwd: tempFolder('guide'),
    env: { PATH: process.env['PATH'], ...env },
    timeout: 60_000,
  });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (output += text.toString()));
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  return new Promise((resolve) =>
    child.once('close', (code) => resolve({ code, printed: output.split(`\n${END}\n`), errors })),
  );
}

/** Converts documented output to a pattern: `…` stands for varying parts. */
function pattern(shown: string): RegExp {
  return new RegExp(
    `^${shown
      .trim()
      .split('…')
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^]*')}$`,
  );
}

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
    const all = steps();
    const { user, password } = api.owner;
    const env = { GATEWAY: api.url, EMAIL: user.email, PASSWORD: password, INBOX: inbox.url };
    const { code, printed, errors } = await run(
      all.map(({ commands }) => commands),
      env,
    );
    for (const [at, { commands, shown }] of all.entries()) {
      const told = `${commands}\nprinted\n${printed[at]}\n${errors}`;
      if (at >= printed.length - 1) assert.unreachable(`bash ended with ${code} at ${told}`);
      if (shown !== undefined)
        assert.ok(
          pattern(shown).test((printed[at] ?? '').trim()),
          `${told}\nThe page shows\n${shown}`,
        );
    }
    assert.equal([code, errors], [0, '']);
    assert.ok(all.length >= 15, `the page has only ${all.length} blocks`);
    assert.ok(inbox.requests.length >= 6, 'what was delivered, and sent again');
  } finally {
    await agent.close();
    await api.close();
    await inbox.close();
  }
});

guide.run();
