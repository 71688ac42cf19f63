import { closeSync, constants, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Before each call, the child writes the call's index to a cell of eight bytes in an unlinked file.
// Parent and child share its descriptor, so the parent can read it even after the child has died. A
// write takes 1 µs; a byte per call in a pipe would wake the parent for every call.

const BYTES = 8;

/**
 * The chunk number that a child reports when ready, in the cell and in a reply without answers.
 * Chunks are numbered from 1.
 */
export const STARTED = 0xffffffff;

export interface CallProgress {
  /** 0 before the child is ready, `STARTED` before its first chunk. */
  chunk: number;
  /** Its index in the chunk; undefined between calls. */
  call: number | undefined;
}

/** The caller closes the descriptor. Throws if no file can be written. */
export function openProgress(): number {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
  let failure: unknown;
  for (const folder of ['/dev/shm', tmpdir()]) {
    const path = join(folder, `gateway-sandbox-${randomUUID()}`);
    try {
      const fd = openSync(path, flags, 0o600);
      try {
        unlinkSync(path);
        writeSync(fd, new Uint8Array(BYTES), 0, BYTES, 0);
        return fd;
      } catch (error) {
        closeSync(fd);
        throw error;
      }
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** For the parent. Throws the system error if the descriptor cannot be read. */
export function readProgress(fd: number): CallProgress {
  const cell = new Uint32Array(2);
  readSync(fd, new Uint8Array(cell.buffer), 0, BYTES, 0);
  const [chunk = 0, running = 0] = cell;
  return { chunk, call: running === 0 ? undefined : running - 1 };
}

/** For the child. */
export function progressWriter(fd: number): (chunk: number, call: number | undefined) => void {
  const cell = new Uint32Array(2);
  const bytes = new Uint8Array(cell.buffer);
  return (chunk, call) => {
    cell[0] = chunk;
    cell[1] = call === undefined ? 0 : call + 1;
    writeSync(fd, bytes, 0, BYTES, 0);
  };
}
