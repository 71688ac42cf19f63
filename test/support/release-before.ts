import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const exec = promisify(execFile);

/** Stands for the release before until the first tag: the first commit that packs itself. */
export const FIRST = '6c42561291e446a53ff0796a269f723f6131bc61';

/**
 * Installs the newest tagged release before this commit, or `FIRST`, from packages that its own
 * release script packs. Kept in `~/.cache/gateway-releases`.
 * @returns the installed `gateway.js`
 * @throws if the clone is shallow and lacks the commit
 */
export async function installReleaseBefore(): Promise<{ bin: string; commit: string }> {
  const commit = await commitBefore();
  const home = path.join(os.homedir(), '.cache/gateway-releases');
  const installed = path.join(home, commit);
  const bin = path.join(installed, 'node_modules/@gateway/cli/bin/gateway.js');
  if (fs.existsSync(bin)) return { bin, commit };
  fs.mkdirSync(home, { recursive: true });
  const work = fs.mkdtempSync(path.join(home, 'making-'));
  try {
    const [tree, made] = [path.join(work, 'tree'), path.join(work, 'installed')];
    fs.mkdirSync(tree);
    fs.mkdirSync(made);
    const npm = (cwd: string, ...args: string[]) =>
      run('npm', [...args, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], cwd);
    await run('git', ['archive', `--output=${work}/tree.tar`, commit], root);
    await run('tar', ['-xf', `${work}/tree.tar`, '-C', tree], work);
    await npm(tree, 'ci', '--ignore-scripts');
    await npm(tree, 'run', 'build');
    const out = path.join(work, 'tarballs');
    await run(
      process.execPath,
      [
        '--input-type=module',
        `--eval=import { packNpm } from './scripts/release/npm.mjs'; await packNpm(${JSON.stringify({ root: tree, out })})`,
      ],
      tree,
    );
    fs.writeFileSync(path.join(made, 'package.json'), '{"name":"operations","private":true}');
    const tarballs = fs
      .readdirSync(out)
      .filter((name) => name.endsWith('.tgz'))
      .map((name) => path.join(out, name));
    await npm(made, 'install', '--omit=optional', '--ignore-scripts', ...tarballs);
    fs.renameSync(made, installed);
  } finally {
    fs.rmSync(work, { recursive: true });
  }
  return { bin, commit };
}

async function commitBefore(): Promise<string> {
  const tag = await run(
    'git',
    ['describe', '--tags', '--abbrev=0', '--match=v[0-9]*', 'HEAD^'],
    root,
  ).catch(() => FIRST);
  return run('git', ['rev-parse', '--verify', `${tag}^{commit}`], root).catch((error: unknown) => {
    throw new Error(`the clone has no commit ${tag}: fetch it with git fetch --unshallow`, {
      cause: error,
    });
  });
}

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  return (await exec(command, args, { cwd, maxBuffer: 1 << 26 })).stdout.trim();
}
