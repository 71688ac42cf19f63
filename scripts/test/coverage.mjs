// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { command } from '../prepare/command.mjs';

/**
 * Where V8 writes what the processes of one test file have run, and what becomes of it.
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
   * The folder for the processes of one test file.
   * @param {string} name
   */
  const folderOf = (name) => path.join(raw, flat(name));
  return {
    folderOf,

    /**
     * Keeps of a test file's coverage only what tells of our own packages, some hundredths of it, so that a run of many processes stays small.
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

    /** Writes `coverage/index.html` and `coverage/lcov.info`, and gives the summary as text. Files that no test has loaded count too. */
    report: async () => {
      const c8 = path.join(root, 'node_modules', 'c8', 'bin', 'c8.js');
      const places = ['packages/*/src/**', 'plugins/*/src/**'];
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
      for (const reporter of ['text-summary', 'html', 'lcovonly']) args.push('--reporter', reporter);
      const { output } = await command(process.execPath, [c8, ...args], { cwd: root });
      for (const made of [raw, slim]) fs.rmSync(made, { recursive: true, force: true });
      return output.trim();
    },
  };
}

/**
 * The source maps go too: the report reads them beside the files.
 * @param {string} root
 * @param {string} text
 * @returns {string | undefined} nothing when the process ran nothing of ours, or was killed while it wrote
 */
function ours(root, text) {
  /** @type {{ result: { url: string }[] }} */
  let coverage;
  try {
    coverage = JSON.parse(text);
  } catch {
    return undefined;
  }
  const places = ['packages', 'plugins'].map((folder) => `${pathToFileURL(path.join(root, folder)).href}/`);
  const result = coverage.result.filter(({ url }) => places.some((place) => url.startsWith(place)));
  return result.length > 0 ? JSON.stringify({ result }) : undefined;
}
