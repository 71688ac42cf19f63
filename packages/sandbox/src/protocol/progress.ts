import { closeSync, constants, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// The child says which call it is at before it starts it, and the parent can read that at any time, even when the child is dead: eight
// bytes in a file without a name, shared by descriptor. A write costs the child 1 µs and wakes nobody, where a byte per call in a pipe
// would wake the parent for every call.

const BYTES = 8;

/** What a child writes in place of a chunk, here and in a reply without answers, when it is ready for its first one. Chunks are numbered from 1. */
export const STARTED = 0xffffffff;

export interface Progress {
  /** The chunk that the child works at; 0 before it is ready, STARTED before its first one. */
  chunk: number;
  /** The call of that chunk that is running guest code, or undefined between calls. */
  call: number | undefined;
}

/**
 * Makes the cell, empty. Returns its descriptor, to be handed to the child and closed by the caller.
 * Throws when no folder for temporary files can be written.
 */
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

export function readProgress(fd: number): Progress {
  const cell = new Uint32Array(2);
  readSync(fd, new Uint8Array(cell.buffer), 0, BYTES, 0);
  const [chunk = 0, running = 0] = cell;
  return { chunk, call: running === 0 ? undefined : running - 1 };
}

/** The child's side: a function that writes the cell. */
export function progressWriter(fd: number): (chunk: number, call: number | undefined) => void {
  const cell = new Uint32Array(2);
  const bytes = new Uint8Array(cell.buffer);
  return (chunk, call) => {
    cell[0] = chunk;
    cell[1] = call === undefined ? 0 : call + 1;
    writeSync(fd, bytes, 0, BYTES, 0);
  };
}
