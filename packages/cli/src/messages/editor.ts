import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { editorCommand } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';

/**
 * A shell's exit status for a missing command:
 * https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02
 */
const NO_COMMAND = 127;

/**
 * Opens VISUAL or EDITOR, or vi, on a file that is unreadable to other users. The returned path
 * exists until `remove` is called. If the editor fails, deletes the file and throws
 * `editor_failed`.
 */
export async function editInEditor(bytes: Uint8Array, name: string) {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-edit-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  const path = join(folder, name);
  try {
    await writeFile(path, bytes, { mode: 0o600, flag: 'wx' });
    await runEditor(editorCommand() ?? 'vi', path);
    const edited = await readFile(path);
    // Editors append a line feed, which the function would receive, so it is removed.
    const isAdded = edited.at(-1) === 0x0a && bytes.at(-1) !== 0x0a;
    return { bytes: isAdded ? edited.subarray(0, -1) : edited, path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * A shell, because the command can have arguments, such as `code --wait`. Ignores Ctrl-C, which the
 * editor handles.
 */
async function runEditor(editor: string, path: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', path], { stdio: 'inherit' });
  const leave = () => undefined;
  const stop = () => child.kill();
  process.on('SIGINT', leave);
  process.on('SIGTERM', stop);
  process.on('SIGHUP', stop);
  try {
    const [status, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    if (status === 0) return;
    const reason =
      status === NO_COMMAND ? 'is not there' : `ended with ${signal ?? `status ${status}`}`;
    throw new GatewayError('editor_failed', { editor, reason });
  } finally {
    process.off('SIGINT', leave);
    process.off('SIGTERM', stop);
    process.off('SIGHUP', stop);
  }
}
