import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  acknowledges,
  contentTypeOf,
  PluginError,
  whenAborted,
  type CheckContext,
  type Message,
  type Outcome,
  type SourceContext,
  type SourcePlugin,
  type WatchContext,
} from '@gateway/plugin';
import type { Place, SourceRig } from '@gateway/plugin-conformance';
import { LEASE_MS, PASSWORD, queues, ToyQueue, type Stored } from './toy-broker.js';

export interface ToyConnection extends Record<string, unknown> {
  queue: string;
  password: string;
  /** The address does not answer. */
  silent?: boolean;
}

/** The replaceable steps of the toy; a broken source replaces some. */
export interface Steps {
  check(connection: ToyConnection, context: CheckContext): Promise<void>;
  /** Finds the queue. Rejects with a `PluginError`. */
  connect(connection: ToyConnection, signal: AbortSignal): Promise<ToyQueue>;
  connected(context: SourceContext, queue: ToyQueue): void;
  lag(queue: ToyQueue, context: SourceContext): void;
  /** Withdraws the reported lag at the end of a run. */
  forgetLag(context: SourceContext): void;
  /** Reports the lag while no reader runs. */
  watch(queue: ToyQueue, context: WatchContext): void;
  workers(context: SourceContext): number;
  window(context: SourceContext): number;
  /** True while the worker continues. */
  reads(context: SourceContext): boolean;
  /** Selects and orders received messages. */
  sort(received: Stored[], context: SourceContext): Stored[];
  message(stored: Stored, queue: ToyQueue): Message;
  /** Called after a message was handed over. */
  took(stored: Stored, queue: ToyQueue, context: SourceContext): void;
  /**
   * Called after a message has settled. `open` are the unsettled ones, oldest first. Must not
   * throw.
   */
  settled(
    outcome: Outcome,
    stored: Stored,
    queue: ToyQueue,
    context: SourceContext,
    open: readonly Stored[],
  ): void;
  /** Extends the locks of unsettled messages. */
  extend(open: readonly Stored[], queue: ToyQueue): void;
  /** Resolves when the worker may close. */
  drain(idle: () => Promise<void>): Promise<void>;
  /** Handles the failure of a worker within `run`. */
  failed(error: unknown, connection: ToyConnection, context: SourceContext): Promise<void>;
}

export const KILLED = 'killed';

const GIVES_UP_MS = 300;

export const sound: Steps = {
  async check(connection, { signal }) {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), GIVES_UP_MS);
    try {
      await sound.connect(connection, AbortSignal.any([signal, limit.signal]));
      signal.throwIfAborted();
    } finally {
      clearTimeout(timer);
    }
  },
  async connect({ queue: name, password, silent }, signal) {
    if (silent) await sleep(60_000, undefined, { signal }).catch(() => undefined);
    if (silent) throw new PluginError('The toy broker does not answer.', { fix: 'Check silent.' });
    if (password !== PASSWORD)
      throw new PluginError('The toy broker refused the password.', { fix: 'Check password.' });
    const queue = queues.get(name);
    if (!queue) throw new PluginError(`There is no queue ${name}.`, { fix: 'Check queue.' });
    return Promise.resolve(queue);
  },
  connected: ({ report }) => report('reading'),
  lag: ({ waiting }, { lag }) => lag?.('', waiting),
  forgetLag: ({ lag }) => lag?.('', null),
  watch: ({ waiting }, { lag }) => lag('', waiting),
  workers: ({ workers }) => workers,
  window: ({ window }) => window,
  reads: ({ signal }) => !signal.aborted,
  sort: (received) => received,
  message: ({ number, at, body, headers }, { name }) => ({
    coordinates: `${name}/${number}`,
    timestamp: at,
    body,
    headers,
    key: null,
    contentType: contentTypeOf(headers),
    attributes: { number: String(number) },
  }),
  took: () => {},
  settled(outcome, { number }, queue) {
    if (acknowledges(outcome)) queue.acknowledge(number);
    else queue.giveBack(number);
  },
  extend: (open, queue) => open.forEach(({ number }) => queue.extend(number)),
  drain: (idle) => idle(),
  failed(error) {
    if (error instanceof PluginError) throw error;
    throw new PluginError('The toy broker went away.', { fix: 'Bring it back.', cause: error });
  },
};

/** A correct source, except for these steps. */
export function toySource(otherwise: Partial<Steps> = {}): SourcePlugin<ToyConnection> {
  const steps = { ...sound, ...otherwise };
  return {
    check: (connection, context) => steps.check(connection, context),
    async watch(connection, context) {
      steps.watch(await steps.connect(connection, context.signal), context);
      await whenAborted(context.signal);
    },
    async run(connection, handle, context) {
      context.report('connecting');
      try {
        const queue = await steps.connect(connection, context.signal);
        steps.connected(context, queue);
        await Promise.all(
          Array.from({ length: steps.workers(context) }, () => work(steps, queue, handle, context)),
        );
      } catch (error) {
        if (!context.signal.aborted || !connection.silent)
          await steps.failed(error, connection, context);
      } finally {
        steps.forgetLag(context);
      }
    },
  };
}

async function work(
  steps: Steps,
  queue: ToyQueue,
  handle: (message: Message) => Promise<Outcome>,
  context: SourceContext,
): Promise<void> {
  const { signal } = context;
  const reader = randomUUID();
  const open = new Map<number, Stored>();
  let wake = () => {};
  const change = () => new Promise<void>((resolve) => (wake = resolve));
  const woken = () => wake();
  signal.addEventListener('abort', woken);
  const extending = setInterval(() => {
    if (!queue.isAway) steps.extend([...open.values()], queue);
  }, LEASE_MS / 4);
  const take = (stored: Stored) => {
    open.set(stored.number, stored);
    const settling = handle(steps.message(stored, queue));
    steps.took(stored, queue, context);
    void settling.then((outcome) => {
      open.delete(stored.number);
      wake();
      // While the broker is away, the message is redelivered.
      if (!queue.isAway || steps.settled !== sound.settled)
        steps.settled(outcome, stored, queue, context, [...open.values()]);
    });
  };
  try {
    while (steps.reads(context)) {
      const room = steps.window(context) - open.size;
      if (room <= 0) {
        await change();
        continue;
      }
      const received = await queue.receive(reader, room, signal);
      steps.lag(queue, context);
      for (const stored of steps.sort(received, context)) {
        if (steps.reads(context)) take(stored);
        else queue.giveBack(stored.number);
      }
      if (signal.aborted) await new Promise((resolve) => setImmediate(resolve));
    }
    await steps.drain(async () => {
      while (open.size > 0) await change();
    });
  } finally {
    clearInterval(extending);
    signal.removeEventListener('abort', woken);
  }
}

/** A rig with all optional parts. */
export function toyRig(): SourceRig<ToyConnection> {
  const open = (): Place<ToyConnection> & { queue: ToyQueue } => {
    const queue = new ToyQueue();
    queues.set(queue.name, queue);
    return {
      queue,
      connection: { queue: queue.name, password: PASSWORD },
      send: (messages) =>
        Promise.resolve(messages.forEach(({ body, headers }) => queue.send(body, headers))),
      unacknowledged: () => Promise.resolve(queue.unacknowledged),
    };
  };
  return {
    shape: 'queue',
    ordered: true,
    leaseMs: LEASE_MS,
    settings: { greeting: 'hello' },
    open: () => Promise.resolve(open()),
    openBreakable: () => {
      const place = open();
      return Promise.resolve({
        ...place,
        cut: () => Promise.resolve(void (place.queue.isAway = true)),
        heal: () => Promise.resolve(void (place.queue.isAway = false)),
      });
    },
    // The toy runs in this process: only the locks of a killed reader remain.
    reader: async ({ connection }) => {
      const received = await queues
        .get(connection['queue'] as string)!
        .receive(KILLED, 3, new AbortController().signal);
      return { handed: received.length, end: undefined, kill: () => Promise.resolve() };
    },
    wrongCredentials: {
      connection: { queue: 'any', password: 'a-wrong-password' },
      secrets: ['a-wrong-password'],
    },
    missing: { connection: { queue: 'nowhere', password: PASSWORD } },
    silent: { connection: { queue: 'any', password: PASSWORD, silent: true } },
  };
}
