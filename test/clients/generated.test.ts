// deadline: 900 s, long
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { description } from '../server/described.js';
import { endpoint } from '../support/endpoint.js';
import { production } from '../support/production.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';
import { cached } from '../support/start/cached.js';

const generated = suite('clients/generated');

const OAPI = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';
const OGEN = 'github.com/ogen-go/ogen@v1.24.0';
const programs = fileURLToPath(new URL('../fixtures/generators', import.meta.url));
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
const tsc = path.join(modules, 'typescript/bin/tsc');
const FLAGS = [
  '--strict',
  '--target',
  'es2022',
  '--module',
  'nodenext',
  '--skipLibCheck',
  '--types',
  'node',
];
const document = JSON.stringify(description);

/**
 * Returns a folder with the document and the output of `make`, cached until document, programs or
 * versions change.
 */
function made(
  name: string,
  versions: readonly string[],
  make: (folder: string, run: Run) => void,
): string {
  const used = fs
    .readdirSync(programs)
    .map((file) => fs.readFileSync(path.join(programs, file), 'utf8'));
  const hash = createHash('sha256')
    .update([document, make.toString(), ...versions, ...used].join('\0'))
    .digest('hex');
  return cached(`gateway-generated-${name}-${hash.slice(0, 16)}`, (folder) => {
    process.stderr.write(`generating clients by ${versions.join(', ')}\n`);
    fs.writeFileSync(path.join(folder, 'openapi.json'), document);
    make(folder, (program, ...args) =>
      execFileSync(program, args, {
        cwd: folder,
        encoding: 'utf8',
        maxBuffer: 64e6,
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
  });
}

type Run = (program: string, ...args: string[]) => string;

function place(folder: string, program: string, as: string): void {
  fs.mkdirSync(path.dirname(path.join(folder, as)), { recursive: true });
  fs.copyFileSync(path.join(programs, program), path.join(folder, as));
}

const go = await own.go();
const inGo = made('go', [OAPI, OGEN], (folder, run) => {
  place(folder, 'oapi-codegen.go', 'use-oapi/main.go');
  place(folder, 'ogen.go', 'use-ogen/main.go');
  fs.mkdirSync(path.join(folder, 'oapi'));
  fs.writeFileSync(
    path.join(folder, 'ogen.yml'),
    'generator: { features: { disable_all: true, enable: [paths/client] } }\n',
  );
  run(
    go,
    'run',
    OAPI,
    '-generate',
    'types,client',
    '-package',
    'oapi',
    '-o',
    'oapi/api.go',
    'openapi.json',
  );
  run(
    go,
    'run',
    OGEN.replace('@', '/cmd/ogen@'),
    '-config',
    'ogen.yml',
    '-target',
    'ogen',
    '-package',
    'ogen',
    'openapi.json',
  );
  run(go, 'mod', 'init', 'clients');
  run(go, 'get', OGEN, 'github.com/oapi-codegen/runtime@v1.9.0');
  run(go, 'mod', 'tidy');
  run(go, 'build', '-o', 'bin/', './use-oapi', './use-ogen');
});
const PYTHON = 'openapi-python-client==0.29.1';
const python = await own.python(PYTHON);
const inPython = made('python', [PYTHON], (folder, run) => {
  const said = run(
    python,
    ...[
      '-m',
      'openapi_python_client',
      'generate',
      '--path',
      'openapi.json',
      '--meta',
      'none',
      '--output-path',
      'gateway_client',
    ],
  );
  fs.writeFileSync(path.join(folder, 'said'), said);
  place(folder, 'openapi_python_client.py', 'use.py');
});
const NPM = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0'];
const inTypeScript = made('typescript', NPM, (folder, run) => {
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  run('npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', ...NPM);
  run('npx', 'openapi-typescript', 'openapi.json', '--output', 'api.d.ts');
  place(folder, 'openapi-fetch.mts', 'use.mts');
  run(process.execPath, tsc, ...FLAGS, '--typeRoots', path.join(modules, '@types'), 'use.mts');
});

const [gateway, receiver] = await Promise.all([production({ agents: 1 }), endpoint()]);
generated.after(async () => void (await Promise.all([gateway.close(), receiver.close()])));

for (const [name, program, ...args] of [
  ['oapi', path.join(inGo, 'bin/use-oapi')],
  ['ogen', path.join(inGo, 'bin/use-ogen')],
  ['python', python, path.join(inPython, 'use.py')],
  ['typescript', process.execPath, path.join(inTypeScript, 'use.mjs')],
] as const) {
  generated(
    `a client made by a generator of others creates, subscribes, sends, lists and sends again: ${name}`,
    async () => {
      const given = [
        `http://127.0.0.1:${gateway.serverPort}/api/v1`,
        gateway.projectId,
        gateway.apiKey,
        receiver.url,
      ];
      const { stdout } = await promisify(execFile)(program, [...args, ...given], {
        timeout: 60_000,
      });
      assert.equal(JSON.parse(stdout), { n: 1 });
      await until('the second delivery', () => {
        const mine = receiver.requests.filter(
          ({ url, headers }) => url === `/${name}` && headers['x-shop'] === '7',
        );
        return Promise.resolve(mine.length === 2 || undefined);
      });
    },
  );
}

generated('no generator left anything out', () => {
  const said = fs.readFileSync(path.join(inPython, 'said'), 'utf8');
  assert.not.match(said, /Unable to|Cannot parse|WARNING|omitted/);
});

generated.run();
