import { access, constants, realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SandboxLimits } from '../protocol/protocol.js';

// Confines a child process in addition to SES: an empty environment (`guest-process.ts`), V8's heap
// limit, the kernel's data limit, read access to its own code only, no child processes, and SIGKILL
// when its parent dies. Mechanisms that the machine lacks are omitted. The deadline and the heap
// limit need only Node.

/**
 * Beyond the heap. Node 20 uses up to 150 MB before any function runs; newer versions also reserve
 * 512 for machine code.
 */
const DATA_MB_BESIDE_HEAP = [256, 256 + 512];

export interface Command {
  file: string;
  args: string[];
}

/** Strictest first. A command that the machine does not support fails immediately. */
export async function childCommands(limits: SandboxLimits): Promise<Command[]> {
  const [setpriv, prlimit, node] = await Promise.all([
    find('setpriv'),
    find('prlimit'),
    nodeArguments(limits),
  ]);
  // A child must die with its parent: nothing else would enforce the deadline of a looping child.
  const dying = setpriv === undefined ? [] : [[setpriv, '--pdeathsig', 'KILL', '--no-new-privs']];
  // `--core=0` prevents core files of functions that run out of memory.
  const data = DATA_MB_BESIDE_HEAP.map(
    (megabytes) => `--data=${(limits.memoryMb + megabytes) * 1024 * 1024}`,
  );
  const limiting = prlimit === undefined ? [] : data.map((limit) => [prlimit, limit, '--core=0']);
  return [...dying, []].flatMap((outer) =>
    [...limiting, []].map((inner) => {
      const [file = process.execPath, ...args] = [...outer, ...inner, process.execPath, ...node];
      return { file, args };
    }),
  );
}

async function nodeArguments(limits: SandboxLimits): Promise<string[]> {
  const entry = await realpath(fileURLToPath(new URL('../child/child.js', import.meta.url)));
  const [ses, acorn] = await Promise.all(
    ['ses', 'acorn'].map((name) => realpath(createRequire(import.meta.url).resolve(name))),
  );
  const dist = dirname(dirname(entry));
  return [
    `--max-old-space-size=${limits.memoryMb}`,
    // A child that fills its memory must not use every core for garbage collection.
    '--single-threaded-gc',
    '--no-addons',
    '--no-warnings',
    '--unhandled-rejections=none',
    ...permissionArguments([
      `${dist}/`,
      // Node 20.19 looks there whether the files are modules.
      join(dirname(dist), 'package.json'),
      `${dirname(dirname(ses!))}/`,
      `${dirname(dirname(acorn!))}/`,
    ]),
    entry,
    ses!,
    acorn!,
    String(limits.maxOutputBytes),
  ];
}

/**
 * Only these folders can be read, and no processes or threads started:
 * https://nodejs.org/api/permissions.html
 */
function permissionArguments(readable: readonly string[]): string[] {
  const flag = ['--permission', '--experimental-permission'].find((name) =>
    process.allowedNodeEnvironmentFlags.has(name),
  );
  return flag === undefined ? [] : [flag, ...readable.map((place) => `--allow-fs-read=${place}`)];
}

/** The child has no PATH to find a tool with. */
async function find(name: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  for (const folder of [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/bin']) {
    if (!isAbsolute(folder)) continue;
    const file = join(folder, name);
    try {
      await access(file, constants.X_OK);
      return file;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}
