import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { emptyFolder, folderIn, makeFolder, type Folder } from './folder.js';
import { startInbox, type Inbox } from './inbox.js';
import { claim } from './lock.js';
import { readMemory, remember, type Memory } from './memory.js';
import { stopLeftover } from './postgres-leftover.js';
import type { Reservation } from './ports.js';
import { passes, postgresUser, type User } from './postgres-user.js';
import { secretsOf, type Secrets } from './settings.js';

/** The folder, held by this process until `release`. */
export interface HeldFolder {
  readonly folder: Folder;
  readonly secrets: Secrets;
  /** Who runs Postgres, when that is not us. */
  readonly user: User | undefined;
  readonly postgresHome: string;
  readonly inbox: Inbox;
  /** Why the state began anew although there was some; undefined when it did not. */
  readonly restarted: string | undefined;
  release(): Promise<void>;
}

/** Data of another user than the one of the folder, where that user cannot reach the folder. */
const ELSEWHERE = '/var/tmp/gateway-dev-';

/**
 * Takes `./.gateway` for this process and finds out what is in it. The inbox is started for it, because it is what proves to others that we live.
 *
 * @param isFresh deletes what was there
 * @throws Problem when another process holds it, or when its files are broken
 */
export async function holdFolder({ isFresh, reservation }: { isFresh: boolean; reservation: Reservation }): Promise<HeldFolder> {
  const folder = folderIn('.');
  const user = postgresUser();
  makeFolder(folder, { passable: user !== undefined });
  const token = randomUUID();
  const inbox = await reservation.listen('inbox', async (port, letGo) => {
    await letGo();
    return startInbox({ port, token });
  });
  let giveUp = () => {};
  // The lock first: as soon as the inbox is silent, another process may take the folder over, and a lock in it is that one's.
  const release = async () => {
    giveUp();
    await inbox.close();
  };
  try {
    giveUp = await claim(folder.lock, { pid: process.pid, port: reservation.ports.inbox, token });
    const restarted = await clear(folder, { isFresh, user });
    const { areNew: _, ...secrets } = secretsOf(folder);
    return { folder, secrets, user, postgresHome: postgresHome(folder, user), inbox, restarted, release };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Empties the folder when that is asked for, or when what is in it is of no use; then it says why. */
async function clear(folder: Folder, { isFresh, user }: { isFresh: boolean; user: User | undefined }): Promise<string | undefined> {
  const memory = isFresh ? memoryOrNothing(folder) : readMemory(folder.memory);
  const data = join(memory.postgres_home ?? folder.postgres, 'data');
  const lacks = isFresh ? undefined : missing(folder, memory, existsSync(data));
  if (!isFresh && lacks === undefined) return undefined;
  await stopLeftover(data);
  if (memory.postgres_home?.startsWith(ELSEWHERE)) rmSync(memory.postgres_home, { recursive: true, force: true });
  emptyFolder(folder);
  makeFolder(folder, { passable: user !== undefined });
  return lacks && `What was in ${folder.path} is of no use without ${lacks}.`;
}

/** Data and the keys to it belong together; undefined when neither or both are there. */
function missing(folder: Folder, { api_key: apiKey }: Memory, hasData: boolean): string | undefined {
  if (!hasData) return apiKey === undefined ? undefined : 'the data of Postgres';
  if (apiKey === undefined) return 'the API key, which a first start that was cut off has not kept';
  return secretsOf(folder).areNew ? `the keys in ${folder.config}` : undefined;
}

function memoryOrNothing(folder: Folder): Memory {
  try {
    return readMemory(folder.memory);
  } catch {
    return {};
  }
}

/** In the folder, unless the user who runs Postgres cannot pass through to it: root's home is closed to everybody else. */
function postgresHome(folder: Folder, user: User | undefined): string {
  const { postgres_home: elsewhere } = readMemory(folder.memory);
  if (elsewhere !== undefined) return elsewhere;
  if (!user || passes(folder.postgres, user)) return folder.postgres;
  const made = mkdtempSync(ELSEWHERE);
  remember(folder.memory, { postgres_home: made });
  return made;
}
