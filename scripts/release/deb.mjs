// @ts-check
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import { command, succeed } from '../prepare/command.mjs';

/** Run by Go, so nothing has to be installed. */
const NFPM = 'github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2';

/**
 * Makes the Debian package: the npm packages without tracers, installed by
 * their lock file below /usr/lib/gateway, and
 * the files in `deploy/systemd`.
 * @param {object} options
 * @param {string} options.root
 * @param {string} options.out
 * @param {string} options.version
 * @param {typeof import('./names.mjs').names} options.names
 * @param {string[]} options.packages the npm packages in `out`, packed with their lock file
 * @returns {Promise<string[]>} the package
 */
export async function packDeb({ root, out, version, names, packages }) {
  const maintainer = `gateway <gateway@${new URL(names.repository).host}>`;
  const stage = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-deb-'));
  const file = path.join(out, `gateway_${version}_all.deb`);
  try {
    fs.cpSync(path.join(root, 'deploy/systemd'), stage, { recursive: true });
    fs.copyFileSync(path.join(root, 'docs/guides/systemd.md'), path.join(stage, 'systemd.md'));
    fs.copyFileSync(path.join(root, 'LICENSE'), path.join(stage, 'LICENSE'));
    const lib = path.join(stage, 'lib');
    fs.mkdirSync(lib);
    const inputs = [
      ...packages,
      path.join(out, 'package.json'),
      path.join(out, 'package-lock.json'),
    ];
    for (const input of inputs) fs.copyFileSync(input, path.join(lib, path.basename(input)));
    const args = ['ci', '--omit=dev', '--omit=optional', '--ignore-scripts'];
    await succeed('npm', [...args, '--no-audit', '--no-fund'], { cwd: lib });
    for (const entry of fs.readdirSync(lib, { recursive: true, withFileTypes: true })) {
      // Settings of the tools of their authors.
      if (entry.isFile() && /^\.|\.tgz$|^package-lock\.json$/.test(entry.name))
        fs.rmSync(path.join(entry.parentPath, entry.name));
    }
    const log = `gateway (${version}) stable; urgency=medium\n\n  * ${names.repository}/blob/v${version}/CHANGELOG.md\n\n -- ${maintainer}  ${await dateOf(root)}\n`;
    fs.writeFileSync(path.join(stage, 'changelog.gz'), zlib.gzipSync(log, { level: 9 }));
    fs.mkdirSync(out, { recursive: true });
    const nfpm = ['run', NFPM, 'package', '--config=nfpm.yaml', '--packager=deb'];
    const env = {
      ...process.env,
      VERSION: version,
      HOMEPAGE: names.repository,
      MAINTAINER: maintainer,
    };
    await succeed('go', [...nfpm, `--target=${file}`], { cwd: stage, env });
    return [file];
  } finally {
    fs.rmSync(stage, { recursive: true });
  }
}

/**
 * Returns when the release was committed, as changelogs of Debian have it.
 * @param {string} root
 */
async function dateOf(root) {
  const { ok, output } = await command('git', ['log', '-1', '--format=%aD'], { cwd: root });
  return ok ? output.trim() : new Date().toUTCString().replace('GMT', '+0000');
}
