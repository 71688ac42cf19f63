import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { Problem } from './problem.js';

/**
 * Who holds the folder. The process proves that it lives by answering on its port with the token; its pid alone proves nothing, since
 * after a crash it may belong to somebody else.
 */
export interface Claim {
  readonly pid: number;
  /** Its inbox. */
  readonly port: number;
  readonly token: string;
}

/** Where a holder answers with its token. */
export const PROOF_PATH = '/.gateway-dev';

const TRIES = 5;
const PROOF_MS = 3_000;

/**
 * Takes the folder for this process. What a killed process left behind is taken over.
 *
 * @param own of a process that already answers on its port
 * @returns what gives the folder back
 * @throws Problem when another process holds it
 */
export async function claim(file: string, own: Claim): Promise<() => void> {
  for (let tries = 0; tries < TRIES; tries++) {
    if (place(file, own)) return () => rmSync(file, { force: true });
    const found = read(file);
    if (found === undefined) continue;
    const holder = parse(found);
    if (holder && (await lives(holder))) {
      throw new Problem(`gateway dev runs in this folder already (process ${holder.pid})`, {
        fix: `use that one, stop it with Ctrl-C or \`kill ${holder.pid}\`, or start this one in another folder`,
      });
    }
    remove(file, found, own.pid);
  }
  throw new Problem(`the lock ${file} changes hands all the time`, { fix: 'start one `gateway dev` at a time' });
}

/** Puts the lock there whole, if there is none. */
function place(file: string, own: Claim): boolean {
  const fresh = `${file}.${own.pid}`;
  writeFileSync(fresh, JSON.stringify(own), { mode: 0o600 });
  try {
    linkSync(fresh, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(fresh, { force: true });
  }
}

/** Removes a stale lock, unless another process has replaced it with its own since it was read. */
function remove(file: string, stale: string, pid: number): void {
  const taken = `${file}.${pid}.stale`;
  try {
    renameSync(file, taken);
    if (read(taken) !== stale) linkSync(taken, file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'EEXIST') throw error;
  } finally {
    rmSync(taken, { force: true });
  }
}

async function lives({ pid, port, token }: Claim): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${PROOF_PATH}`, { signal: AbortSignal.timeout(PROOF_MS) });
    return (await answer.text()) === token;
  } catch (error) {
    // It may be suspended (Ctrl-Z): it accepts connections and does not answer.
    return (error as Error).name === 'TimeoutError' && exists(pid);
  }
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function parse(text: string): Claim | undefined {
  try {
    return JSON.parse(text) as Claim;
  } catch {
    return undefined;
  }
}
