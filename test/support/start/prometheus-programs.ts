import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { have } from './packages.js';
import { Unavailable } from './unavailable.js';

/** The paths of the two programs of Prometheus. */
export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

/**
 * Those of the PATH, else those of Debian's package. The package is unpacked into a cache and not installed: both programs stand alone, nobody has to be
 * root, and no service of the system is started on port 9090.
 * @throws `Unavailable` with what a person has to install
 */
export function prometheusPrograms(): PrometheusPrograms {
  if (have('prometheus') && have('promtool')) return { prometheus: 'prometheus', promtool: 'promtool' };
  const folder = path.join(os.homedir(), '.cache', 'gateway-prometheus');
  const found = { prometheus: path.join(folder, 'usr/bin/prometheus'), promtool: path.join(folder, 'usr/bin/promtool') };
  if (!isComplete(found)) unpack(folder, found);
  return found;
}

/** Fills a folder beside the final one and renames it, so that a half-filled one is never used and two may fetch at once. */
function unpack(folder: string, wanted: PrometheusPrograms): void {
  const why = 'prometheus and promtool are needed for the tests of the metrics and are not on the PATH: install them';
  if (!have('apt-get') || !have('dpkg')) throw new Unavailable(`${why} (https://prometheus.io/download)`);
  fs.mkdirSync(path.dirname(folder), { recursive: true });
  const filling = fs.mkdtempSync(`${folder}-`);
  process.stderr.write(`fetching Prometheus into ${folder} (Debian package, 19 MB)\n`);
  try {
    const problem = download(filling);
    const [archive] = fs.readdirSync(filling).filter((name) => name.endsWith('.deb'));
    if (!archive) throw new Unavailable(`${why} (Debian and Ubuntu: apt-get install prometheus); apt-get could not: ${problem}`);
    const { status, stderr } = spawnSync('dpkg', ['-x', archive, '.'], { cwd: filling, encoding: 'utf8' });
    if (status !== 0) throw new Unavailable(`${why}; dpkg could not unpack ${archive}: ${stderr.trim()}`);
    fs.rmSync(path.join(filling, archive));
    if (isComplete(wanted)) return;
    fs.rmSync(folder, { recursive: true, force: true });
    fs.renameSync(filling, folder);
  } finally {
    fs.rmSync(filling, { recursive: true, force: true });
  }
}

/** Downloads the package, after a look for what is new when it is not known (only root may look). Gives what apt-get said last. */
function download(folder: string): string {
  const apt = (...args: string[]) => spawnSync('apt-get', ['-q', ...args], { cwd: folder, encoding: 'utf8' });
  let { status, stderr } = apt('download', 'prometheus');
  if (status !== 0 && process.getuid?.() === 0) {
    apt('-o', 'DPkg::Lock::Timeout=300', 'update');
    ({ status, stderr } = apt('download', 'prometheus'));
  }
  return stderr.trim().split('\n').slice(-3).join(' ');
}

function isComplete(programs: PrometheusPrograms): boolean {
  return fs.existsSync(programs.prometheus) && fs.existsSync(programs.promtool);
}
