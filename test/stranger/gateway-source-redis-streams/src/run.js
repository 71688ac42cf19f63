import { acknowledges } from '@gateway/plugin';
import { connect, ensureGroup, explained } from './client.js';
import { messageOf } from './message.js';

/** The limit of a blocking read, after which messages of dead readers are checked. */
const BLOCK_MS = 1_000;
/** Entries per read; more would only be held here. */
const BATCH = 100;
/** Messages still unsettled this long after the end are left to another reader. */
const GRACE_MS = 10_000;

/** Reads until the signal aborts: one reader per worker, each a consumer of the group. */
export async function run(connection, handle, context) {
  const failed = new AbortController();
  const stop = AbortSignal.any([context.signal, failed.signal]);
  const readers = Array.from({ length: context.workers }, (_, i) =>
    read(connection, handle, {
      ...context,
      signal: stop,
      clientId: `${context.clientId}-${i}`,
    }).catch((error) => {
      failed.abort();
      throw explained(error, connection.address);
    }),
  );
  const ends = await Promise.allSettled(readers);
  const broken = ends.find(({ status }) => status === 'rejected');
  if (broken && !context.signal.aborted) throw broken.reason;
}

/**
 * One reader. Errors of connecting after the signal has aborted do not matter: `run` checks the
 * signal.
 */
async function read(connection, handle, { signal, window, clientId, settings, report }) {
  const { stream, group } = connection;
  const reading = await connect(connection, signal);
  const acking = await connect(connection, signal).catch((error) => {
    reading.disconnect();
    throw error;
  });
  const inFlight = new Map();
  let wake = () => {};
  let failure;
  const fail = (error) => {
    failure ??= error;
    wake();
  };

  const take = (entry) => {
    const id = entry[0].toString();
    if (inFlight.has(id)) return;
    const message = messageOf(stream, entry);
    const settling = handle(message).then(async (outcome) => {
      if (acknowledges(outcome)) await acking.xack(stream, group, id);
    });
    const over = settling.catch(fail).then(() => {
      inFlight.delete(id);
      wake();
    });
    inFlight.set(id, over);
  };
  // Extends unsettled messages: claiming again resets their idle time.
  const renewal = setInterval(() => {
    if (inFlight.size > 0)
      acking.xclaim(stream, group, clientId, 0, ...inFlight.keys(), 'JUSTID').catch(fail);
  }, settings.take_over_ms / 3);
  // A blocking read ends only with its connection.
  const leave = () => {
    reading.disconnect();
    wake();
  };
  signal.addEventListener('abort', leave, { once: true });
  try {
    await ensureGroup(reading, connection);
    report('reading');
    let tookOverAt = 0;
    while (!signal.aborted && !failure) {
      const room = Math.min(BATCH, window - inFlight.size);
      if (room <= 0) {
        await new Promise((resolve) => (wake = resolve));
        continue;
      }
      if (Date.now() - tookOverAt >= settings.take_over_ms / 2) {
        const [, abandoned] = await reading.xautoclaimBuffer(
          stream,
          group,
          clientId,
          settings.take_over_ms,
          '0',
          'COUNT',
          room,
        );
        for (const entry of abandoned) if (entry?.[1]) take(entry);
        if (abandoned.length < room) tookOverAt = Date.now();
        continue;
      }
      const args = [
        'GROUP',
        group,
        clientId,
        'COUNT',
        room,
        'BLOCK',
        BLOCK_MS,
        'STREAMS',
        stream,
        '>',
      ];
      const answer = await reading.xreadgroupBuffer(...args);
      for (const [, entries] of answer ?? []) for (const entry of entries) take(entry);
    }
    if (failure) throw failure;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', leave);
    await Promise.race([
      Promise.all(inFlight.values()),
      new Promise((resolve) => setTimeout(resolve, GRACE_MS).unref()),
    ]);
    clearInterval(renewal);
    reading.disconnect();
    acking.disconnect();
  }
}
