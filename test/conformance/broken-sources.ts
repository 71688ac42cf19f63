import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { acknowledges, PluginError, type Message, type SourcePlugin } from '@gateway/plugin';
import { PASSWORD, type Stored, type ToyQueue } from './toy-broker.js';
import { KILLED, sound, toySource, type Steps, type ToyConnection } from './toy-source.js';

/** A source with one fault, which its key names. */
interface BrokenSource {
  readonly plugin: () => SourcePlugin<ToyConnection>;
}

const text = ({ body }: { body: Uint8Array }) => Buffer.from(body).toString();

/** The sound source with one faulty step. */
const step = (otherwise: Partial<Steps>): BrokenSource => ({
  plugin: () => toySource(otherwise),
});

/** The sound source with a faulty, stateful step. */
const remembering = (otherwise: () => Partial<Steps>): BrokenSource => ({
  plugin: () => toySource(otherwise()),
});

/** The sound source with a faulty field of a message. */
const message = (
  change: (message: Message, stored: Stored, queue: ToyQueue) => Partial<Message>,
): BrokenSource =>
  step({
    message: (stored, queue) => {
      const right = sound.message(stored, queue);
      return { ...right, ...change(right, stored, queue) };
    },
  });

const noAnswer = () => new PluginError('The toy broker does not answer.', { fix: 'Check silent.' });

/** Timers that leaking sources have left running. */
export const leaks: NodeJS.Timeout[] = [];

/** By the rule that catches them, then by their fault. */
export const brokenSources: Readonly<Record<string, Readonly<Record<string, BrokenSource>>>> = {
  'reads-each-message-once': {
    'skips some messages': step({
      sort: (received) => received.filter(({ number }) => number % 7 !== 3),
    }),
    'does not report reading': step({ connected: () => {} }),
    'hands an accepted message over twice': remembering(() => {
      const twice = new Set<Stored>();
      return {
        settled: (outcome, stored, queue, context, open) => {
          // Once per queue, it does not acknowledge a message, which is redelivered.
          if (stored.number !== 30 || twice.has(stored))
            return sound.settled(outcome, stored, queue, context, open);
          twice.add(stored);
          queue.giveBack(stored.number);
        },
      };
    }),
    'ends when no message comes': step({
      connected: (context, queue) => {
        sound.connected(context, queue);
        if (queue.isUntouched) throw new Ended();
      },
      failed: async (error, connection, context) => {
        if (!(error instanceof Ended)) await sound.failed(error, connection, context);
      },
    }),
  },
  'hands-over-what-was-sent': {
    'names equal messages alike': message(({ body }) => ({
      coordinates: createHash('sha1').update(body).digest('hex'),
    })),
    'tells the time in seconds': message(({ timestamp }) => ({
      timestamp: Math.floor(timestamp / 1000),
    })),
    'cuts a long body': message(({ body }) => ({
      body: body.length > 1000 ? body.subarray(0, 65_536) : body,
    })),
    'writes names of headers in lower case': message(({ headers }) => ({
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
      ),
    })),
  },
  'keeps-the-order': {
    'reverses the order': step({ sort: (received) => received.toReversed() }),
  },
  'keeps-the-window': {
    'waits for each message to settle': step({ window: () => 1 }),
    'exceeds the window': step({ window: ({ window }) => window + 6 }),
    'reads no more once its window was full': remembering(() => {
      const full = new WeakSet<AbortSignal>();
      return {
        // After its window was full, a run never reads again.
        reads: ({ signal }) => !signal.aborted,
        window: ({ window, signal }) => (full.has(signal) ? 0 : window),
        took: (_stored, queue, { window, signal }) => {
          if (window === 5 && queue.unacknowledged === 40) setTimeout(() => full.add(signal), 50);
        },
      };
    }),
  },
  'goes-on-around-a-stuck-message': {
    'waits for a stuck message': remembering(() => {
      const waitsFor = new WeakMap<AbortSignal, number>();
      return {
        window: ({ window, signal }) => (waitsFor.has(signal) ? 0 : window),
        took: (stored, _queue, { signal }) => {
          if (text(stored) === 'stuck') waitsFor.set(signal, stored.number);
        },
        settled: (outcome, stored, queue, context, open) => {
          if (waitsFor.get(context.signal) === stored.number) waitsFor.delete(context.signal);
          sound.settled(outcome, stored, queue, context, open);
        },
      };
    }),
  },
  'ends-when-everything-has-settled': {
    'hands messages over after the abort': remembering(() => {
      const late = new WeakMap<AbortSignal, number>();
      return {
        reads: ({ signal, window }) => {
          if (!signal.aborted) return true;
          const more = late.get(signal) ?? (window === 4 ? 3 : 0);
          late.set(signal, more - 1);
          return more > 0;
        },
      };
    }),
    'ends with a message unsettled': step({ drain: () => Promise.resolve() }),
    'ends too late': step({
      drain: async (idle) => {
        await idle();
        await sleep(5_000, undefined, { ref: false });
      },
    }),
    'does not acknowledge what settles while it ends': step({
      settled: (outcome, stored, queue, context, open) => {
        if (context.signal.aborted && acknowledges(outcome)) queue.giveBack(stored.number);
        else sound.settled(outcome, stored, queue, context, open);
      },
    }),
    'skips messages in the next run': remembering(() => {
      const runs = new Map<string, number>();
      return {
        connect: async (connection, signal) => {
          const queue = await sound.connect(connection, signal);
          const before = runs.get(queue.name) ?? 0;
          runs.set(queue.name, before + 1);
          // Later runs start at the newest messages.
          if (before > 0 && queue.unacknowledged > 5) queue.skipTo(15);
          return queue;
        },
      };
    }),
  },
  'acknowledges-what-settled-and-nothing-else': {
    'acknowledges before the outcome': step({
      took: ({ number }, queue) => queue.acknowledge(number),
    }),
    'does not acknowledge duplicates and dropped messages': step({
      settled: (outcome, { number }, queue) => {
        if (outcome === 'accepted' || outcome === 'quarantined') queue.acknowledge(number);
        else queue.giveBack(number);
      },
    }),
    'acknowledges a refused message': step({
      settled: (_outcome, { number }, queue) => queue.acknowledge(number),
    }),
    'acknowledges by position': step({
      settled: (outcome, stored, queue, context, open) => {
        if (!acknowledges(outcome) || open.length === 0)
          return sound.settled(outcome, stored, queue, context, open);
        // Acknowledges by position, as if messages settled in order.
        for (const { number } of [stored, ...open])
          if (number <= stored.number) queue.acknowledge(number);
      },
    }),
    'loses a refused message': step({
      settled: (outcome, { number }, queue, { signal }) => {
        if (acknowledges(outcome)) queue.acknowledge(number);
        // Refused while reading: the message remains locked forever.
        else if (!signal.aborted) queue.lose(number);
        else queue.giveBack(number);
      },
    }),
    'changes coordinates on redelivery': remembering(() => {
      let handedOver = 0;
      return {
        message: (stored, queue) => ({
          ...sound.message(stored, queue),
          coordinates: `${queue.name}/${handedOver++}`,
        }),
      };
    }),
  },
  'takes-over-from-a-dead-reader': {
    'leaves messages to a dead reader': step({
      connected: (context, queue) => {
        queue.keepFor(KILLED);
        sound.connected(context, queue);
      },
    }),
  },
  'keeps-a-message-that-takes-long': {
    'does not extend the lease': step({ extend: () => {} }),
  },
  'keeps-two-sources-apart': {
    'ends a source with another one': remembering(() => {
      // The second source depends on the connection of the first.
      let first: AbortSignal | undefined;
      const guests = new WeakSet<AbortSignal>();
      return {
        took: (stored, _queue, { signal }) => {
          if (text(stored) === 'for one') first = signal;
          if (text(stored) === 'for two') guests.add(signal);
        },
        sort: (received, { signal }) => (guests.has(signal) && first?.aborted ? [] : received),
      };
    }),
  },
  'tells-lag-as-a-number-of-messages': {
    'reports a negative lag': step({
      lag: ({ waiting }, { lag }) => lag?.('', waiting - 100),
    }),
    'reports no lag while nothing is read': step({ watch: () => {} }),
  },
  'check-accepts-what-can-be-read': {
    'refuses a good connection': step({
      check: (connection, context) =>
        sound.check({ ...connection, password: `${connection.password} ` }, context),
    }),
    'takes a message to check': step({
      check: async (connection, context) => {
        await sound.check(connection, context);
        const queue = await sound.connect(connection, context.signal);
        const [taken] =
          queue.unacknowledged > 0 ? await queue.receive('check', 1, context.signal) : [];
        if (taken) queue.acknowledge(taken.number);
      },
    }),
  },
  'check-tells-of-a-missing-place': {
    'accepts a missing queue': step({
      check: async (connection, context) => {
        if (connection.queue !== 'nowhere') await sound.check(connection, context);
      },
    }),
  },
  'refuses-wrong-credentials': {
    'accepts wrong credentials in check': step({
      check: async (connection, context) => {
        if (connection.password === PASSWORD) await sound.check(connection, context);
      },
    }),
    'retries wrong credentials forever': step({
      failed: async (error, connection, context) => {
        // Retries forever without reporting.
        if (connection.password !== PASSWORD) await ended(context.signal);
        else await sound.failed(error, connection, context);
      },
    }),
    'logs a password': step({
      failed: async (error, connection, context) => {
        context.log.warn({ connection }, 'the toy broker refused');
        await sound.failed(error, connection, context);
      },
    }),
  },
  'gives-up-when-nothing-answers': {
    'checks a silent broker forever': step({
      check: async (connection, context) => {
        if (!connection.silent) return sound.check(connection, context);
        await ended(context.signal);
        throw noAnswer();
      },
    }),
    'does not end while it connects': step({
      connect: async (connection, signal) => {
        if (connection.silent && !signal.aborted) await sleep(3_000, undefined, { ref: false });
        return sound.connect(connection, signal);
      },
      check: (connection, context) =>
        connection.silent ? Promise.reject(noAnswer()) : sound.check(connection, context),
    }),
  },
  'survives-an-outage': {
    'does not tell that the broker is away': step({
      failed: async (error, _connection, context) => {
        if (error instanceof PluginError) throw error;
        context.report('connecting');
        await ended(context.signal);
      },
    }),
    'reads no more after an outage': remembering(() => {
      const broken = new Set<string>();
      return {
        failed: (error, connection, context) => {
          if (!(error instanceof PluginError)) broken.add(connection.queue);
          return sound.failed(error, connection, context);
        },
        connect: async (connection, signal) => {
          if (broken.has(connection.queue))
            throw new PluginError('The toy client is closed.', { fix: 'Start the process again.' });
          return sound.connect(connection, signal);
        },
      };
    }),
  },
  'rests-when-nothing-comes': {
    'spins while nothing comes': remembering(() => {
      const spin = (signal: AbortSignal) => void (signal.aborted || setImmediate(spin, signal));
      return {
        connected: (context, queue) => {
          spin(context.signal);
          sound.connected(context, queue);
        },
      };
    }),
  },
  'closes-what-it-opened': {
    'leaves a timer after run': step({
      connected: (context, queue) => {
        leaks.push(setInterval(() => {}, 1_000));
        sound.connected(context, queue);
      },
    }),
    'leaves a timer after check': step({
      check: async (connection, context) => {
        leaks.push(setInterval(() => {}, 1_000));
        await sound.check(connection, context);
      },
    }),
  },
  'lets-nothing-escape': {
    'leaves a rejection unhandled': step({
      settled: (outcome, stored, queue, context, open) => {
        sound.settled(outcome, stored, queue, context, open);
        void Promise.reject(new Error('the toy forgot to look'));
      },
    }),
  },
};

/** Ends a run as if it had been stopped. */
class Ended extends Error {}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
