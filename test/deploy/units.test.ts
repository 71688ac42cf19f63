import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';

const units = suite('deploy/units');

installed('systemd-analyze', ['systemd'], 'to check units');
const folder = tempFolder('units');
const source = fileURLToPath(new URL('../../deploy/systemd', import.meta.url));
/** Copies with an instance, and with a command that exists here. */
const files = ['gateway-server.service', 'gateway-agent@.service'].map((name) => {
  const file = path.join(folder, name.replace('@', '@5008'));
  const text = fs.readFileSync(path.join(source, name), 'utf8');
  fs.writeFileSync(file, text.replace('/usr/bin/gateway', '/bin/true'));
  return file;
});

function analyze(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
  assert.is(status, 0, `${stderr}${stdout}`);
  return `${stderr}${stdout}`;
}

units('systemd understands them', () => {
  assert.is(analyze('verify', ...files), '');
});

units('a process is exposed little: below 3 of 10', () => {
  for (const file of files)
    analyze('security', '--offline=true', '--no-pager', '--threshold=29', file);
});

units('both run under the same restrictions', () => {
  const [server, agent] = files.map((file) =>
    fs
      .readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => !/^(Description|ExecStart)=/.test(line)),
  );
  assert.equal(agent, server);
});

units.run();
