// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { command } from '../prepare/command.mjs';

/**
 * Collects V8 coverage of the processes of each test file and reports it.
 * @param {string} root
 */
export function startCoverage(root) {
  const folder = path.join(root, 'coverage');
  const raw = path.join(folder, 'raw');
  const slim = path.join(folder, 'slim');
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(slim, { recursive: true });
  /** @param {string} name */
  const flat = (name) => name.replaceAll('/', '-');
  /**
   * The folder for V8's output of one test file.
   * @param {string} name
   */
  const folderOf = (name) => path.join(raw, flat(name));
  return {
    folderOf,

    /**
     * Keeps only coverage of the gateway's packages, a few hundredths of it, which limits the disk
     * space of a run with many processes.
     * @param {string} name
     */
    collect: async (name) => {
      const from = folderOf(name);
      for (const entry of fs.existsSync(from) ? fs.readdirSync(from) : []) {
        const kept = ours(root, await fs.promises.readFile(path.join(from, entry), 'utf8'));
        if (kept) await fs.promises.writeFile(path.join(slim, `${flat(name)}-${entry}`), kept);
      }
      fs.rmSync(from, { recursive: true, force: true });
    },

    /**
     * Writes `coverage/index.html` and `coverage/lcov.info`, and returns the summary as text.
     * Includes files that no test has loaded.
     */
    report: async () => {
      const c8 = path.join(root, 'node_modules', 'c8', 'bin', 'c8.js');
      const places = ['packages/*/src/**', 'plugins/*/src/**', 'extras/*/src/**'];
      const args = [
        'report',
        '--temp-directory',
        slim,
        '--reports-dir',
        folder,
        '--all',
        '--exclude-after-remap',
        '--exclude',
        '**/*.d.ts',
      ];
      for (const place of places) args.push('--include', place);
      for (const reporter of ['text-summary', 'html', 'lcovonly'])
        args.push('--reporter', reporter);
      const { output } = await command(process.execPath, [c8, ...args], { cwd: root });
      for (const made of [raw, slim]) fs.rmSync(made, { recursive: true, force: true });
      return output.trim();
    },
  };
}

/**
 * Drops source maps: the report reads them from disk.
 * @param {string} root
 * @param {string} text
 * @returns {string | undefined} undefined if the process ran no code of the gateway, or was killed
 * while writing
 */
function ours(root, text) {
  /** @type {{ result: { url: string }[] }} */
  let coverage;
  try {
    coverage = JSON.parse(text);
  } catch {
    return undefined;
  }
  const places = ['packages', 'plugins', 'extras'].map(
    (folder) => `${pathToFileURL(path.join(root, folder)).href}/`,
  );
  const result = coverage.result.filter(({ url }) => places.some((place) => url.startsWith(place)));
  return result.length > 0 ? JSON.stringify({ result }) : undefined;
}
