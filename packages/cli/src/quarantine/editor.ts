import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { editorCommand } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';

/**
 * The shell's exit status for a missing command.
 * https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02
 */
const NO_COMMAND = 127;

/**
 * Opens VISUAL, EDITOR or vi on the bytes, in a file that other users cannot read. Returns the
 * edited bytes, and their path until `remove`. Throws `editor_failed` after deleting the file.
 */
export async function editInEditor(bytes: Uint8Array, name: string) {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-edit-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  const path = join(folder, name);
  try {
    await writeFile(path, bytes, { mode: 0o600, flag: 'wx' });
    await runEditor(editorCommand() ?? 'vi', path);
    const edited = await readFile(path);
    // Editors append a line feed, which a function would see.
    const isAdded = edited.at(-1) === 0x0a && bytes.at(-1) !== 0x0a;
    return { bytes: isAdded ? edited.subarray(0, -1) : edited, path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The command is shell text, as in `code --wait`. The editor handles Ctrl-C. */
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
