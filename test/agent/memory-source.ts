import type { ActivatedPlugins, ActiveSource } from '#core/plugins/activation';
import {
  acknowledges,
  type Message,
  type Outcome,
  type SourceContext,
  type SourcePlugin,
} from '@gateway/plugin';

interface Waiting {
  readonly message: Message;
  readonly settled: (outcome: Outcome) => void;
}

/**
 * An in-memory broker: queues by name, read by any number of agents. An unacknowledged message is
 * redelivered before the others.
 */
export class Broker {
  readonly #queues = new Map<string, Queue>();

  /** @param watch of the plugin */
  constructor(private readonly watch?: SourcePlugin['watch']) {}

  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = new Queue()));
    return queue;
  }

  /**
   * The plugin that reads this broker, in the agent's form. `source` names the queue in its
   * connection.
   */
  plugins(): ActivatedPlugins['sources'] {
    const plugin: SourcePlugin = {
      check: () => Promise.resolve(),
      run: (connection, handle, context) => {
        const { queue, password } = connection as { queue: string; password: string };
        return this.queue(queue).read(handle, context, password);
      },
      ...(this.watch && { watch: this.watch }),
    };
    const source: ActiveSource = {
      manifest: { kind: 'source', name: 'memory', module: './memory.js' },
      connectionSchema: {
        properties: { queue: { type: 'string' }, password: { type: 'string', 'x-secret': true } },
      },
      settings: {},
      load: () => Promise.resolve(plugin),
    };
    return new Map([['memory', source]]);
  }
}

let last = 0;

export class Queue {
  readonly #waiting: Waiting[] = [];
  readonly #wakers = new Set<() => void>();
  readers = 0;
  /** The number of connections, including failed ones. */
  connections = 0;
  readonly passwords: string[] = [];
  /** The maximum number of messages in flight at one reader. */
  mostInFlight = 0;
  /** The `context.lag` of the last reader; can be called too late. */
  lag: SourceContext['lag'];
  lost: SourceContext['lost'];
  /** The numbers of readers requested at connection or later. */
  readonly workers: number[] = [];
  /** True if its readers change their number on request, without a new connection. */
  follows = false;
  /** Makes it refuse readers, and disconnect connected ones. */
  failure: Error | undefined;

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Adds a message; resolves with the acknowledging outcome. */
  send(body: string | Uint8Array | object, fields: Partial<Message> = {}): Promise<Outcome> {
    const bytes =
      typeof body === 'string'
        ? Buffer.from(body)
        : body instanceof Uint8Array
          ? body
          : Buffer.from(JSON.stringify(body));
    const message: Message = {
      coordinates: `memory/0/${last++}`,
      timestamp: Date.now(),
      body: bytes,
      headers: {},
      ...fields,
    };
    return new Promise((settled) => {
      this.#waiting.push({ message, settled });
      this.#wake();
    });
  }

  fail(failure: Error): void {
    this.failure = failure;
    this.#wake();
  }

  async read(
    handle: (message: Message) => Promise<Outcome>,
    context: SourceContext,
    password: string,
  ): Promise<void> {
    this.connections++;
    this.#refuse();
    this.readers++;
    this.passwords.push(password);
    this.lag = context.lag;
    this.lost = context.lost?.bind(context);
    this.workers.push(context.workers);
    if (this.follows) context.onWorkers?.((workers) => this.workers.push(workers));
    context.report('reading');
    const inFlight = new Set<Promise<void>>();
    try {
      while (!context.signal.aborted) {
        this.#refuse();
        const next = inFlight.size < context.window ? this.#waiting.shift() : undefined;
        if (!next) {
          await this.#change(context.signal);
          continue;
        }
        const settling: Promise<void> = handle(next.message).then((outcome) => {
          inFlight.delete(settling);
          if (acknowledges(outcome)) next.settled(outcome);
          else this.#waiting.unshift(next);
          this.#wake();
        });
        inFlight.add(settling);
        this.mostInFlight = Math.max(this.mostInFlight, inFlight.size);
      }
      await Promise.all(inFlight);
    } finally {
      this.readers--;
    }
  }

  #refuse(): void {
    const { failure } = this;
    if (failure) throw failure;
  }

  #wake(): void {
    for (const wake of [...this.#wakers]) wake();
  }

  /** Resolves on a new or settled message, or when the signal aborts. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#wakers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#wakers.add(wake);
      signal.addEventListener('abort', wake);
      if (signal.aborted) wake();
    });
  }
}
