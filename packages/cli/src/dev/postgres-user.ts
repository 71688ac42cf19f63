import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Problem } from './problem.js';

/** Who runs Postgres, which refuses to run as root. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

const NAMES = ['postgres', 'nobody', 'daemon'];

/** When we are root, a user of the system that is not; undefined when Postgres may run as we do. */
export function postgresUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of NAMES) {
    // name:password:uid:gid:…, see passwd(5)
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Problem(`Postgres refuses to run as root, and this system has none of the users ${NAMES.join(', ')}`, {
    fix: 'run gateway dev as another user, or make one with `useradd --system postgres`',
  });
}

/** True when the user may pass through every folder above the path. */
export function passes(path: string, user: User): boolean {
  for (let at = dirname(path); ; at = dirname(at)) {
    const { uid, gid, mode } = statSync(at);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
    if (at === dirname(at)) return true;
  }
}
