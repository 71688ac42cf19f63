// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const heartbeatMs = 1_000;
const staleAfterMs = 15_000;

/**
 * Runs `work` under a lock file, exclusively. The holder touches the file every second: a lock
 * untouched for fifteen seconds belongs to a dead process and is taken over.
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(file, work) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const token = `${process.pid} ${randomUUID()}`;
  let told = false;
  while (!create(file, token)) {
    if (breakStale(file)) continue;
    if (!told) console.error('waiting for another process that installs or builds here');
    told = true;
    await sleep(200);
  }
  const heartbeat = setInterval(() => touch(file), heartbeatMs);
  try {
    return await work();
  } finally {
    clearInterval(heartbeat);
    if (read(file) === token) fs.rmSync(file, { force: true });
  }
}

/**
 * @param {string} file
 * @param {string} token
 */
function create(file, token) {
  try {
    fs.writeFileSync(file, token, { flag: 'wx' });
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Moves a stale lock aside. Two processes can see the same stale lock. The rename is atomic; a
 * process that has renamed a fresh lock instead puts it back.
 * @param {string} file
 * @returns {boolean} true to retry immediately
 */
function breakStale(file) {
  const aside = `${file}.${randomUUID()}`;
  try {
    const age = Date.now() - fs.statSync(file).mtimeMs;
    if (age < staleAfterMs) return false;
    const seen = read(file);
    fs.renameSync(file, aside);
    if (read(aside) !== seen) fs.linkSync(aside, file);
    return true;
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    return code === 'ENOENT' || code === 'EEXIST'; // another process was faster: retry
  } finally {
    fs.rmSync(aside, { force: true });
  }
}

/** @param {string} file */
function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** @param {string} file */
function touch(file) {
  try {
    const now = new Date();
    fs.utimesSync(file, now, now);
  } catch {
    // The lock is gone. The work continues; the next prepare detects missing results.
  }
}
