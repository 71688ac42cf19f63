import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { cached } from './cached.js';
import { apt, have } from './packages.js';
import { Unavailable } from './unavailable.js';

export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

/**
 * Returns the programs on the PATH, else from Debian's package. The package is unpacked into a
 * cache instead of installed: this needs no root, and no system service starts on port 9090.
 * @throws `Unavailable` with installation instructions
 */
export function prometheusPrograms(): PrometheusPrograms {
  if (have('prometheus') && have('promtool'))
    return { prometheus: 'prometheus', promtool: 'promtool' };
  return programsIn(cached('gateway-prometheus', fetch));
}

function fetch(folder: string): void {
  const why =
    'prometheus and promtool are needed for the tests of the metrics and are not on the PATH: install them';
  if (!have('apt-get') || !have('dpkg'))
    throw new Unavailable(`${why} (https://prometheus.io/download)`);
  process.stderr.write('fetching Prometheus (Debian package, 19 MB)\n');
  const problem = download(folder);
  if (problem)
    throw new Unavailable(
      `${why} (Debian and Ubuntu: apt-get install prometheus); apt-get could not: ${problem}`,
    );
  const archive = fs.readdirSync(folder).find((name) => name.endsWith('.deb')) ?? '';
  const { status, stderr } = spawnSync('dpkg', ['-x', archive, '.'], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Unavailable(`${why}; dpkg could not unpack ${archive}: ${stderr.trim()}`);
  const missing = Object.values(programsIn(folder)).find((program) => !fs.existsSync(program));
  if (missing) throw new Unavailable(`${why}; ${archive} brings no ${path.basename(missing)}`);
  fs.rmSync(path.join(folder, archive));
}

/**
 * Downloads the package; as root, updates the package lists if it is unknown. Returns the error, if
 * any.
 */
function download(cwd: string): string | undefined {
  const problem = apt(['download', 'prometheus'], { cwd });
  if (!problem || process.getuid?.() !== 0) return problem;
  apt(['update']);
  return apt(['download', 'prometheus'], { cwd });
}

function programsIn(folder: string): PrometheusPrograms {
  return {
    prometheus: path.join(folder, 'usr/bin/prometheus'),
    promtool: path.join(folder, 'usr/bin/promtool'),
  };
}
