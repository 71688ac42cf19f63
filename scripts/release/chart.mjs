// @ts-check
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * Packs the Helm chart without Helm. Alerts and dashboard, which are links in the repository, become
 * files; chart and image get the version of the release.
 * @param {{ root: string, out: string, version: string }} options
 * @returns {Promise<string[]>} the archive, as `helm package` names it
 */
export async function packChart({ root, out, version }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-chart-'));
  try {
    const chart = path.join(folder, 'gateway');
    execFileSync('cp', ['-rL', path.join(root, 'deploy/helm/gateway'), chart]);
    const about = path.join(chart, 'Chart.yaml');
    const text = fs.readFileSync(about, 'utf8');
    fs.writeFileSync(about, text.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`));
    fs.mkdirSync(out, { recursive: true });
    const archive = path.join(out, `gateway-${version}.tgz`);
    // The same files make the same archive.
    const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
    execFileSync('tar', [...same, '--mode=u+rw,go+r-w', '-czf', archive, '-C', folder, 'gateway']);
    return [archive];
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}
