import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * Returns a folder in `~/.cache` that is filled once. It is filled under a temporary name and
 * renamed, so that no process uses an incomplete one; of concurrent processes the first wins.
 * @param fill fills the given folder; if it throws, nothing is kept
 */
export function cached(name: string, fill: (folder: string) => void): string {
  const folder = path.join(os.homedir(), '.cache', name);
  if (fs.existsSync(folder)) return folder;
  fs.mkdirSync(path.dirname(folder), { recursive: true });
  const filling = fs.mkdtempSync(`${folder}-`);
  try {
    fill(filling);
    fs.renameSync(filling, folder);
  } catch (error) {
    // Another process was first.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    fs.rmSync(filling, { recursive: true, force: true });
  }
  return folder;
}
