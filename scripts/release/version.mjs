// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { workspaces } from '../prepare/build.mjs';
import { succeed } from '../prepare/command.mjs';
import { Problem } from '../prepare/problem.mjs';

/**
 * Gives all packages a version, and heads what the changelog lists as unreleased with it.
 * @param {{ root: string, version: string }} options
 */
export async function setVersion({ root, version }) {
  const changelog = path.join(root, 'CHANGELOG.md');
  const text = fs.readFileSync(changelog, 'utf8');
  const today = new Date().toISOString().slice(0, 10);
  const [before, unreleased, rest] = text.split(/^(## Unreleased\n)/m);
  if (unreleased === undefined || rest?.trimStart().startsWith('## '))
    throw new Problem(
      'CHANGELOG.md has no changes under "Unreleased": list what users will notice',
    );
  for (const folder of [root, ...workspaces(root)]) {
    const file = path.join(folder, 'package.json');
    const manifest = fs.readFileSync(file, 'utf8');
    const changed = manifest
      .replace(/("version": ")[^"]+/, `$1${version}`)
      .replaceAll(/("@gateway\/[^"]+": ")\d[^"]*/g, `$1${version}`);
    fs.writeFileSync(file, changed);
  }
  fs.writeFileSync(changelog, `${before}${unreleased}\n## ${version} - ${today}\n${rest}`);
  await succeed('npm', ['install', '--package-lock-only', '--ignore-scripts'], { cwd: root });
}
