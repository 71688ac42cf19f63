// @ts-check
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { succeed } from '../prepare/command.mjs';

/** Run by Go, so nothing has to be installed. */
const NFPM = 'github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2';

/**
 * Makes the Debian package: the npm packages without tracers, installed below /usr/lib/gateway, and
 * the files in `deploy/systemd`.
 * @param {object} options
 * @param {string} options.root
 * @param {string} options.out
 * @param {string} options.version
 * @param {typeof import('./names.mjs').names} options.names
 * @param {string[]} options.packages the npm packages, packed
 * @returns {Promise<string[]>} the package
 */
export async function packDeb({ root, out, version, names, packages }) {
  const stage = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-deb-'));
  const file = path.join(out, `gateway_${version}_all.deb`);
  try {
    fs.cpSync(path.join(root, 'deploy/systemd'), stage, { recursive: true });
    fs.copyFileSync(path.join(root, 'docs/guides/systemd.md'), path.join(stage, 'systemd.md'));
    fs.copyFileSync(path.join(root, 'LICENSE'), path.join(stage, 'LICENSE'));
    const lib = path.join(stage, 'lib');
    fs.mkdirSync(lib);
    fs.writeFileSync(path.join(lib, 'package.json'), '{ "private": true }\n');
    await succeed(
      'npm',
      [
        'install',
        '--omit=dev',
        '--omit=optional',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        ...packages.filter((each) => !path.basename(each).includes('-tracer-')),
      ],
      { cwd: lib },
    );
    fs.mkdirSync(out, { recursive: true });
    const args = ['run', NFPM, 'package', '--config=nfpm.yaml', '--packager=deb'];
    const env = {
      ...process.env,
      VERSION: version,
      HOMEPAGE: names.repository,
      MAINTAINER: `gateway <gateway@${new URL(names.repository).host}>`,
    };
    await succeed('go', [...args, `--target=${file}`], { cwd: stage, env });
    return [file];
  } finally {
    fs.rmSync(stage, { recursive: true });
  }
}
