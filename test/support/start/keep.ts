import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

let keeper: ChildProcess | undefined;

/** A new folder in the system's temp folder. It is deleted when it is discarded or this process has ended, in whatever way. */
export function tempFolder(name: string): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `gateway-test-${name}-`));
  tell({ folder });
  return folder;
}

/** Deletes a folder of `tempFolder`. */
export function discard(folder: string): void {
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  tell({ leave: folder });
}

/** The folder of `tempFolder` stays when we end: there is something in it to be read. */
export function spare(folder: string): void {
  tell({ leave: folder });
}

/** From now on the process with this pid is stopped with this signal when we end. */
export function keep(pid: number, signal: NodeJS.Signals): void {
  tell({ keep: { pid, signal } });
}

/** The process has ended: its pid may soon be somebody else's. */
export function forget(pid: number): void {
  tell({ forget: pid });
}

function tell(change: object): void {
  keeper ??= startKeeper();
  keeper.stdin?.write(`${JSON.stringify(change)}\n`);
}

/** In a session of its own, so that neither Ctrl-C nor the end of our process group reaches it, and not holding our event loop. */
function startKeeper(): ChildProcess {
  const script = fileURLToPath(new URL('./keeper.mjs', import.meta.url));
  const child = spawn(process.execPath, [script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env: {} });
  child.unref();
  const input = child.stdin as typeof child.stdin & { unref(): void };
  input.unref();
  input.on('error', () => undefined); // the keeper was killed from outside: nothing to be done about it here
  return child;
}
