import type { IncomingMessage } from 'node:http';
import { GatewayError } from '@gateway/core/errors';

/** Per sender. A body counts until its processing begins. */
const ROOM_BYTES = 16 * 1024 * 1024;
/** For all incomplete bodies from unauthenticated senders. */
const STRANGERS_BYTES = 64 * 1024 * 1024;
/** At least this many bodies of the largest size fit in any budget. */
const BODIES_MIN = 4;
/**
 * An older incomplete body is aborted if the budget of its sender, or of all unauthenticated
 * senders, is used up.
 */
const GRACE_MS = 1_000;
const CHECK_MS = 250;
/** A body received at this rate is never too slow. */
export const BODY_BYTES_PER_SECOND = 65_536;

/** Each sender has its own buffer budget, so that senders do not affect each other. */
export interface BodySender {
  readonly id: string;
  /** No key or signature has been verified yet. */
  readonly isStranger: boolean;
}

export interface ReceivedBody {
  readonly bytes: Buffer;
  /** Frees the buffer budget. Call when processing begins or is abandoned. */
  readonly release: () => void;
}

/**
 * Receives at most `limit` bytes.
 *
 * @throws GatewayError `body_too_large`, `unsupported_media_type` if compressed, `bad_body` if
 *   truncated, `body_slow` if too slow, or `too_many_bodies` if the sender's buffer budget stays
 *   used up
 */
export type ReceiveBody = (
  request: IncomingMessage,
  options: { readonly limit: number; readonly sender: BodySender },
) => Promise<ReceivedBody>;

interface Room {
  readonly most: number;
  bytes: number;
  /** Oldest first. */
  readonly arriving: Set<Arrival>;
}

interface Arrival {
  readonly request: IncomingMessage;
  readonly sinceMs: number;
  /** The sender's budget is first. */
  readonly rooms: readonly Room[];
  bytes: number;
  isPaused: boolean;
  fail(error: GatewayError): void;
}

/**
 * While a buffer budget is used up, only its oldest body continues and the others are paused.
 *
 * @param messageBytes the size of the largest body from an unauthenticated sender
 */
export function bodyRoom({
  messageBytes,
  timeoutSeconds,
}: {
  messageBytes: number;
  timeoutSeconds: number;
}): ReceiveBody {
  const strangers: Room = {
    most: Math.max(STRANGERS_BYTES, BODIES_MIN * messageBytes),
    bytes: 0,
    arriving: new Set(),
  };
  const senders = new Map<string, Room>();
  const arrivals = new Set<Arrival>();
  let checking: NodeJS.Timeout | undefined;

  function check(): void {
    const nowMs = performance.now();
    for (const it of arrivals) {
      const lateMs =
        nowMs - it.sinceMs - 1000 * (timeoutSeconds + it.bytes / BODY_BYTES_PER_SECOND);
      if (lateMs > 0) it.fail(it.isPaused ? crowded(it) : slow(nowMs - it.sinceMs));
    }
    for (const room of new Set(Array.from(arrivals, ({ rooms }) => rooms).flat())) relieve(room);
    if (arrivals.size > 0) return;
    clearInterval(checking);
    checking = undefined;
  }

  /** Aborts slow bodies, oldest first, until the budget is no longer exceeded. */
  function relieve(room: Room): void {
    for (const it of room.arriving) {
      if (!isFull(room)) return;
      const tookMs = performance.now() - it.sinceMs;
      if (tookMs < GRACE_MS) return;
      if (!it.isPaused) it.fail(slow(tookMs));
    }
  }

  const slow = (tookMs: number) =>
    new GatewayError('body_slow', { seconds: Math.round(tookMs / 1000) });
  const crowded = ({ rooms: [own] }: Arrival) =>
    new GatewayError('too_many_bodies', { limit: own!.most, retryAfterSeconds: 1 });

  function enter(
    request: IncomingMessage,
    { limit, sender: { id, isStranger } }: Parameters<ReceiveBody>[1],
    fail: Arrival['fail'],
  ): Arrival {
    const most = Math.max(ROOM_BYTES, BODIES_MIN * limit);
    let own = senders.get(id);
    if (!own) senders.set(id, (own = { most, bytes: 0, arriving: new Set() }));
    const arrival = {
      request,
      sinceMs: performance.now(),
      rooms: isStranger ? [own, strangers] : [own],
      bytes: 0,
      isPaused: false,
      fail,
    };
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

  /** The bytes count toward the sender's budget until the body is released. */
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
      const cutOff = (cause?: unknown) =>
        new GatewayError('bad_body', { reason: 'ended early' }, { cause });
      if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
      const encoding = request.headers['content-encoding'] ?? 'identity';
      if (encoding !== 'identity')
        throw new GatewayError('unsupported_media_type', {
          given: `content-encoding: ${encoding}`,
        });
      if (request.destroyed) throw cutOff();
      let buffered: Buffer | undefined;
      let isOver = false;
      const settle = (error?: GatewayError) => {
        if (isOver) return;
        isOver = true;
        arrived(arrival);
        if (!error)
          return resolve({
            bytes: (buffered ?? Buffer.alloc(0)).subarray(0, arrival.bytes),
            release: () => leave(arrival, sender.id),
          });
        buffered = undefined;
        leave(arrival, sender.id);
        // Drains the rest: closing the connection now would lose the response.
        request.resume();
        reject(error);
      };
      const arrival = enter(request, { limit, sender }, settle);
      request.on('data', (chunk: Buffer) => {
        if (isOver) return;
        if (arrival.bytes + chunk.length > limit) return settle(tooLarge());
        buffered = appended(buffered, arrival.bytes, chunk);
        grow(arrival, chunk.length);
      });
      request.on('end', () => settle());
      // The client disconnected or sent broken chunks, which is not an internal error.
      request.on('error', (cause) => settle(cutOff(cause)));
      request.on('close', () => {
        // Every request emits `close`. Creating an unused error would cost as much as receiving the
        // body.
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

/** Resumes the paused bodies that fit in the budget. The oldest body always does. */
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

/** Doubling the buffer limits memory and copying for many small chunks. */
function appended(buffered: Buffer | undefined, length: number, chunk: Buffer): Buffer {
  if (!buffered) return chunk;
  let grown = buffered;
  if (length + chunk.length > buffered.length) {
    grown = Buffer.allocUnsafeSlow(Math.max(2 * buffered.length, length + chunk.length));
    buffered.copy(grown, 0, 0, length);
  }
  chunk.copy(grown, length);
  return grown;
}
