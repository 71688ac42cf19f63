import type { IncomingMessage } from 'node:http';
import { GatewayError } from '@gateway/core/errors';

/** Bytes that the bodies of one sender hold, from their first byte until the work with them begins. */
const ROOM_BYTES = 16 * 1024 * 1024;
/** Bytes of all bodies that are being received from senders who have not proven who they are. */
const STRANGERS_BYTES = 64 * 1024 * 1024;
/** So many of the largest bodies fit into the room of a sender. */
const BODIES_MIN = 4;
/** A body that takes longer is given up when its sender, or strangers together, have no room left. */
const GRACE_MS = 1_000;
const CHECK_MS = 250;
/** A body that arrives at this rate is never too slow. */
export const BODY_BYTES_PER_SECOND = 65_536;

/** The sender of a body. Slow or large bodies of one sender take no room of others. */
export interface Sender {
  readonly id: string;
  /** Neither a key nor a signature was checked yet. */
  readonly isStranger: boolean;
}

export interface HeldBody {
  readonly bytes: Buffer;
  /** Call it when the work with the body begins, or is given up. */
  release(): void;
}

/**
 * Receives a body of at most `limit` bytes. Throws `body_too_large`, `unsupported_media_type` for one that is compressed, `bad_body` for one that is cut off, `body_slow`,
 * and `too_many_bodies` when the room of its sender stays full.
 */
export type ReceiveBody = (request: IncomingMessage, options: { readonly limit: number; readonly sender: Sender }) => Promise<HeldBody>;

interface Room {
  readonly most: number;
  bytes: number;
  /** Incomplete bodies, oldest first. */
  readonly arriving: Set<Arrival>;
}

interface Arrival {
  readonly request: IncomingMessage;
  readonly sinceMs: number;
  /** The room of the sender comes first. */
  readonly rooms: readonly Room[];
  bytes: number;
  isPaused: boolean;
  fail(error: GatewayError): void;
}

/**
 * Receives bodies, and bounds how long they take and what they hold. Without room, only the oldest body goes on: the others are not read further until there is some.
 *
 * @param messageBytes the largest body
 * @param timeoutSeconds `server.http.body_timeout_seconds`
 */
export function bodyRoom({ messageBytes, timeoutSeconds }: { messageBytes: number; timeoutSeconds: number }): ReceiveBody {
  const most = Math.max(ROOM_BYTES, BODIES_MIN * messageBytes);
  const strangers: Room = { most: Math.max(STRANGERS_BYTES, BODIES_MIN * messageBytes), bytes: 0, arriving: new Set() };
  const senders = new Map<string, Room>();
  const arrivals = new Set<Arrival>();
  let checking: NodeJS.Timeout | undefined;

  function check(): void {
    const nowMs = performance.now();
    for (const it of arrivals) {
      const lateMs = nowMs - it.sinceMs - 1000 * (timeoutSeconds + it.bytes / BODY_BYTES_PER_SECOND);
      if (lateMs > 0) it.fail(it.isPaused ? crowded() : slow(nowMs - it.sinceMs));
    }
    for (const room of new Set(Array.from(arrivals, ({ rooms }) => rooms).flat())) relieve(room);
    if (arrivals.size > 0) return;
    clearInterval(checking);
    checking = undefined;
  }

  /** Gives up bodies whose senders are slow, oldest first, until the room suffices. */
  function relieve(room: Room): void {
    for (const it of room.arriving) {
      if (!isFull(room)) return;
      const tookMs = performance.now() - it.sinceMs;
      if (tookMs < GRACE_MS) return;
      if (!it.isPaused) it.fail(slow(tookMs));
    }
  }

  const slow = (tookMs: number) => new GatewayError('body_slow', { seconds: Math.round(tookMs / 1000) });
  const crowded = () => new GatewayError('too_many_bodies', { limit: most, retryAfterSeconds: 1 });

  function enter(request: IncomingMessage, { id, isStranger }: Sender, fail: Arrival['fail']): Arrival {
    let own = senders.get(id);
    if (!own) senders.set(id, (own = { most, bytes: 0, arriving: new Set() }));
    const arrival = { request, sinceMs: performance.now(), rooms: isStranger ? [own, strangers] : [own], bytes: 0, isPaused: false, fail };
    for (const room of arrival.rooms) room.arriving.add(arrival);
    arrivals.add(arrival);
    checking ??= setInterval(check, CHECK_MS).unref();
    return arrival;
  }

  function grow(it: Arrival, bytes: number): void {
    it.bytes += bytes;
    for (const room of it.rooms) room.bytes += bytes;
    if (!it.rooms.some((room) => isFull(room) && !isFirst(room, it))) return;
    it.isPaused = true;
    it.request.pause();
  }

  /** Takes an arrival that has ended out of its rooms; its bytes stay in that of its sender. */
  function arrived(it: Arrival): void {
    arrivals.delete(it);
    for (const room of it.rooms) {
      room.arriving.delete(it);
      if (room === strangers) free(room, it.bytes);
      else resume(room);
    }
  }

  function free(room: Room, bytes: number): void {
    room.bytes -= bytes;
    resume(room);
  }

  function leave({ rooms: [own], bytes }: Arrival, id: string): void {
    free(own!, bytes);
    if (own!.bytes === 0 && own!.arriving.size === 0) senders.delete(id);
  }

  return (request, { limit, sender }) =>
    new Promise((resolve, reject) => {
      const tooLarge = () => new GatewayError('body_too_large', { limit });
      const cutOff = (cause?: unknown) => new GatewayError('bad_body', { reason: 'ended before it was whole' }, { cause });
      if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
      const encoding = request.headers['content-encoding'] ?? 'identity';
      if (encoding !== 'identity') throw new GatewayError('unsupported_media_type', { given: `content-encoding: ${encoding}` });
      if (request.destroyed) throw cutOff();
      let held: Buffer | undefined;
      let isOver = false;
      const settle = (error?: GatewayError) => {
        if (isOver) return;
        isOver = true;
        arrived(arrival);
        if (!error)
          return resolve({ bytes: (held ?? Buffer.alloc(0)).subarray(0, arrival.bytes), release: () => leave(arrival, sender.id) });
        held = undefined;
        leave(arrival, sender.id);
        // Drains the rest: closing the connection now would lose the response.
        request.resume();
        reject(error);
      };
      const arrival = enter(request, sender, settle);
      request.on('data', (chunk: Buffer) => {
        if (isOver) return;
        if (arrival.bytes + chunk.length > limit) return settle(tooLarge());
        held = appended(held, arrival.bytes, chunk);
        grow(arrival, chunk.length);
      });
      request.on('end', () => settle());
      // The client went away or sent broken chunks: not an internal error.
      request.on('error', (cause) => settle(cutOff(cause)));
      request.on('close', () => {
        // Every request closes; to make an error that nobody gets would take as long as to receive the body.
        if (!isOver) settle(cutOff());
      });
    });
}

function isFull({ bytes, most }: Room): boolean {
  return bytes > most;
}

function isFirst({ arriving }: Room, it: Arrival): boolean {
  const [first] = arriving;
  return first === it;
}

/** Goes on with the bodies that have room again: the oldest always has. */
function resume(room: Room): void {
  if (room.arriving.size === 0) return;
  for (const it of room.arriving) {
    if (it.isPaused && !it.rooms.some((its) => isFull(its) && !isFirst(its, it))) {
      it.isPaused = false;
      it.request.resume();
    }
    if (isFull(room)) return;
  }
}

/** The first `length` bytes of a buffer and these. One that grows doubles, so that many small chunks take neither much memory nor much copying. */
function appended(held: Buffer | undefined, length: number, chunk: Buffer): Buffer {
  if (!held) return chunk;
  let grown = held;
  if (length + chunk.length > held.length) {
    grown = Buffer.allocUnsafeSlow(Math.max(2 * held.length, length + chunk.length));
    held.copy(grown, 0, 0, length);
  }
  chunk.copy(grown, length);
  return grown;
}
