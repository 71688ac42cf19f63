import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { envOf, type Setting, settings } from '#core/config/settings';
import { own } from '../support/services.js';

const compose = suite('deploy/compose');

/** The reference implementation: its schema is that of the specification. */
const LOADER = 'github.com/compose-spec/compose-go/v2/cmd@v2.10.0';
const deploy = fileURLToPath(new URL('../../deploy', import.meta.url));
const go = await own.go();

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly { readonly type: string; readonly source: string }[];
}

const file = path.join(deploy, 'compose/compose.yaml');
const output = execFileSync(go, ['run', LOADER, '--format=json', '--no-interpolation', file], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'pipe'],
  cwd: path.dirname(file),
});
const { services } = JSON.parse(output) as { services: Record<string, Service> };

compose('it follows the specification, and names only settings and files that exist', () => {
  const known = new Set(
    Object.entries<Setting>(settings).map(([key, setting]) => envOf(key, setting)),
  );
  for (const [name, { environment = {}, volumes = [] }] of Object.entries(services)) {
    if (['migrate', 'server', 'agent'].includes(name))
      assert.equal(
        Object.keys(environment).filter((variable) => !known.has(variable)),
        [],
      );
    for (const { type, source } of volumes)
      if (type === 'bind') assert.ok(fs.existsSync(source), `${name} mounts ${source}`);
  }
});

compose('one variable moves the network elsewhere, with the demo and what agents may reach', () => {
  const text = fs.readFileSync(file, 'utf8');
  const places = text.match(/\$\{GATEWAY_NETWORK:-172\.30\.55\}/g) ?? [];
  assert.is(places.length, 4);
  assert.not.match(text.replaceAll(places[0]!, ''), /172\.30|\d+\.\d+\.\d+\.0\/24/);
});

compose('every secret comes from outside the file, and a missing one is an error', () => {
  const secrets = Object.entries(services).flatMap(([name, { environment = {} }]) =>
    Object.entries(environment)
      .filter(([variable]) => /KEY|PASSWORD|AUTH/.test(variable))
      .map(([, value]) => ({ name, value })),
  );
  assert.ok(secrets.length > 8);
  for (const { name, value } of secrets) assert.match(value, /^\$\{[A-Z_]+(:\?.*)?\}$/, name);
  const required = new Set(secrets.map(({ value }) => /^\$\{(\w+):\?/.exec(value)?.[1]));
  for (const { name, value } of secrets)
    assert.ok(required.has(/\w+/.exec(value)?.[0]), `${name}: ${value} is required nowhere`);
});

compose.run();
