import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * A folder in `~/.cache` that is fetched once. It is filled beside the final one and renamed, so that a half-filled one is never used and two may fetch at
 * once: the first one stays.
 * @param fill puts into the folder that it is given what belongs there; when it throws, nothing is kept
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
    // Another one was first after all.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    fs.rmSync(filling, { recursive: true, force: true });
  }
  return folder;
}
