import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import type { Database } from './database.js';
import { tempFolder } from './start/keep.js';
import type { PostgresServer } from './start/postgres.js';
import { until } from './until.js';

/** A disk for a database's tables that can be filled. */
export interface SmallDisk {
  /**
   * `disk`: a separate file system. `trigger`: mounting is not permitted, so inserts of events fail
   * with Postgres' error for a full disk.
   */
  readonly kind: 'disk' | 'trigger';
  fill(): Promise<void>;
  free(): Promise<void>;
  close(): void;
}

const SIZE_MB = 64;

/**
 * Moves a database's tables to a small disk; if mounting is not permitted, prepares inserts to fail
 * in the same manner.
 */
export async function smallDisk(postgres: PostgresServer, db: Database): Promise<SmallDisk> {
  const folder = tempFolder('disk');
  const { uid, gid } = fs.statSync(`/proc/${postgres.pid}`);
  const options = `size=${SIZE_MB}m,uid=${uid},gid=${gid},mode=0700`;
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]).status !== 0)
    return triggered(db);
  const unmount = () => void spawnSync('umount', ['--lazy', folder]);
  process.once('exit', unmount);
  await db.rows(`create tablespace small location '${folder}'`);
  // Retried on deadlocks: it locks table after table, and a running gateway does so in another
  // order.
  for (const kind of ['table', 'index'])
    await until('the lock of every table', async () => {
      await db.rows(`alter ${kind} all in tablespace pg_default set tablespace small`);
      return true;
    });
  const ballast = path.join(folder, 'ballast');
  return {
    kind: 'disk',
    fill: async () => {
      const file = fs.openSync(ballast, 'a');
      try {
        for (const block = Buffer.alloc(4096); ;) fs.writeSync(file, block);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        fs.closeSync(file);
      }
    },
    free: async () => fs.rmSync(ballast),
    close: () => {
      process.off('exit', unmount);
      unmount();
    },
  };
}

async function triggered(db: Database): Promise<SmallDisk> {
  await db.rows(`create function disk_is_full() returns trigger language plpgsql as
    $$ begin raise exception 'could not extend file "base/1/1": No space left on device' using errcode = 'disk_full'; end $$`);
  return {
    kind: 'trigger',
    fill: async () =>
      void (await db.rows(
        'create trigger disk_is_full before insert on events for each statement execute function disk_is_full()',
      )),
    free: async () => void (await db.rows('drop trigger disk_is_full on events')),
    close: () => undefined,
  };
}
