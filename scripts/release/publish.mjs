// @ts-check
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { command, succeed } from '../prepare/command.mjs';
import { Problem } from '../prepare/problem.mjs';
import { integrityOf } from './lock.mjs';

/**
 * Publishes a tarball, with provenance where the CI can sign it. One that is published already is
 * left alone, so that a release which failed half-way can be repeated.
 * @param {string} tarball
 * @returns {Promise<string>} what happened, as a sentence
 */
export async function publish(tarball) {
  const { name, version } = JSON.parse(
    execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' }),
  );
  const one = `${name}@${version}`;
  const cwd = path.dirname(tarball);
  const known = await command('npm', ['view', one, 'dist.integrity'], { cwd });
  const [integrity] = /sha512-\S+/.exec(known.ok ? known.output : '') ?? [];
  if (integrity === integrityOf(tarball)) return `${one} is published already.`;
  if (integrity)
    throw new Problem(
      `${one} is published with other content: ${integrity}. Give the release a new version with --version.`,
    );
  const { ACTIONS_ID_TOKEN_REQUEST_URL: github, SIGSTORE_ID_TOKEN: gitlab } = process.env;
  const provenance = github || gitlab ? ['--provenance'] : [];
  await succeed('npm', ['publish', tarball, '--access', 'public', ...provenance], { cwd });
  return `${one} is published${github || gitlab ? ' with provenance' : ''}.`;
}
