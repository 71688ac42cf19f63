import { execFile } from 'node:child_process';
import { access, constants, realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SandboxLimits } from './limits.js';

// What holds a child besides SES: how it is started. Its environment is empty (see `guest-process.ts`), its heap is limited by V8, everything
// else it allocates by the kernel, it may read only its own code and start nothing, and it dies with its parent even while a
// function loops. What a system does not have is left out: the deadline and the heap limit need nothing but Node.

/** A process before any function runs has up to 100 MB of data by the kernel's count, and 48 MB beside the heap limit are V8's nursery. */
const DATA_MB_BESIDE_HEAP = 256;

export interface Command {
  file: string;
  args: string[];
}

/** The command line that starts a child under these limits on this machine. */
export async function childCommand(limits: SandboxLimits): Promise<Command> {
  const dataBytes = (limits.memoryMb + DATA_MB_BESIDE_HEAP) * 1024 * 1024;
  const wrappers = await Promise.all([
    // A child whose parent is killed while a function loops would loop forever: nobody is left to enforce the deadline.
    findWrapper('setpriv', ['--pdeathsig', 'KILL', '--no-new-privs']),
    // No core file of up to the size of the heap for every function that runs out of memory.
    findWrapper('prlimit', [`--data=${dataBytes}`, '--core=0']),
  ]);
  const [file = process.execPath, ...args] = [...wrappers.flat(), process.execPath, ...(await nodeArguments(limits))];
  return { file, args };
}

async function nodeArguments(limits: SandboxLimits): Promise<string[]> {
  const entry = await realpath(fileURLToPath(new URL('./child.js', import.meta.url)));
  const ses = await realpath(createRequire(import.meta.url).resolve('ses'));
  return [
    `--max-old-space-size=${limits.memoryMb}`,
    '--no-expose-wasm',
    '--no-addons',
    '--no-warnings',
    '--unhandled-rejections=none',
    ...permissionArguments([dirname(dirname(entry)), dirname(dirname(ses))]),
    entry,
    ses,
    String(limits.maxOutputBytes),
  ];
}

/** Node's own permissions, https://nodejs.org/api/permissions.html: no files but these, no processes, no threads. */
function permissionArguments(folders: readonly string[]): string[] {
  const flag = ['--permission', '--experimental-permission'].find((name) => process.allowedNodeEnvironmentFlags.has(name));
  return flag === undefined ? [] : [flag, ...folders.map((folder) => `--allow-fs-read=${folder}/`)];
}

/** The wrapper with its arguments when this system has it and lets us use it with them, else nothing. */
async function findWrapper(name: string, args: readonly string[]): Promise<string[]> {
  if (process.platform !== 'linux') return [];
  for (const folder of [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/bin']) {
    const file = join(folder, name);
    if (!(await succeeds(access(file, constants.X_OK)))) continue;
    const trial = new Promise<void>((resolve, reject) => {
      execFile(file, [...args, process.execPath, '--version'], { env: {} }, (error) => (error ? reject(error) : resolve()));
    });
    return (await succeeds(trial)) ? [file, ...args] : [];
  }
  return [];
}

async function succeeds(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}
