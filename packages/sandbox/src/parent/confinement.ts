import { access, constants, realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SandboxLimits } from '../protocol/limits.js';

// What holds a child besides SES: how it is started. Its environment is empty (see `guest-process.ts`), its heap is limited by V8,
// everything else it allocates by the kernel, it may read only its own code and start nothing, and it dies with its parent even
// while a function loops. What a system does not have is left out: the deadline and the heap limit need nothing but Node.

/**
 * Megabytes of data that the kernel grants beside the heap. Node 20 takes up to 150 before any function runs, the nursery of V8
 * included. Newer versions reserve 512 for machine code besides, which they never fill, but the kernel counts it.
 */
const DATA_MB_BESIDE_HEAP = [256, 256 + 512];

export interface Command {
  file: string;
  args: string[];
}

/**
 * The command lines that may start a child under these limits on this machine, the strictest first. The first that starts is to
 * be used: one that asks for too much fails at once.
 */
export async function childCommands(limits: SandboxLimits): Promise<Command[]> {
  const [setpriv, prlimit, node] = await Promise.all([find('setpriv'), find('prlimit'), nodeArguments(limits)]);
  // A child whose parent is killed while a function loops would loop forever: nobody is left to enforce the deadline.
  const dying = setpriv === undefined ? [] : [[setpriv, '--pdeathsig', 'KILL', '--no-new-privs']];
  const limiting = prlimit === undefined ? [] : DATA_MB_BESIDE_HEAP.map((megabytes) => limitData(prlimit, limits.memoryMb + megabytes));
  return [...dying, []].flatMap((outer) =>
    [...limiting, []].map((inner) => {
      const [file = process.execPath, ...args] = [...outer, ...inner, process.execPath, ...node];
      return { file, args };
    }),
  );
}

function limitData(prlimit: string, megabytes: number): string[] {
  // No core file of up to the size of the heap for every function that runs out of memory.
  return [prlimit, `--data=${megabytes * 1024 * 1024}`, '--core=0'];
}

async function nodeArguments(limits: SandboxLimits): Promise<string[]> {
  const entry = await realpath(fileURLToPath(new URL('../child/child.js', import.meta.url)));
  const ses = await realpath(createRequire(import.meta.url).resolve('ses'));
  return [
    `--max-old-space-size=${limits.memoryMb}`,
    // One that fills its memory would take every core for cleaning up.
    '--single-threaded-gc',
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

/** Where a tool of Linux is, or undefined. The child has no PATH to look for it. */
async function find(name: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  for (const folder of [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/bin']) {
    if (!isAbsolute(folder)) continue;
    const file = join(folder, name);
    try {
      await access(file, constants.X_OK);
      return file;
    } catch {
      // Not here.
    }
  }
  return undefined;
}
