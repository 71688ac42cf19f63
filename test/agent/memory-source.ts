import type { ActivatedPlugins, ActiveSource } from '#core/plugins/activation';
import { acknowledges, type Message, type Outcome, type SourceContext, type SourcePlugin } from '@gateway/plugin';

/** What becomes of a message that is not decided. */
interface Waiting {
  readonly message: Message;
  readonly settled: (outcome: Outcome) => void;
}

/**
 * A broker in the memory of the test: queues by name, from which any number of agents read. A message that is not acknowledged is delivered again, in
 * front of the others.
 */
export class Broker {
  readonly #queues = new Map<string, Queue>();

  /** @param watch what the plugin has beside `run` */
  constructor(private readonly watch?: SourcePlugin['watch']) {}

  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = new Queue()));
    return queue;
  }

  /** The plugin that reads it, as it is handed to an agent. `source` names the queue in its connection. */
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
      connectionSchema: { properties: { queue: { type: 'string' }, password: { type: 'string', 'x-secret': true } } },
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
  /** Readers that are connected now. */
  readers = 0;
  /** How often somebody has connected, also in vain. */
  connections = 0;
  /** Passwords that readers came with. */
  readonly passwords: string[] = [];
  /** Most messages that one reader had at a time. */
  mostInFlight = 0;
  /** The `context.lag` of the last reader; it may be called too late. */
  lag: SourceContext['lag'];
  lost: SourceContext['lost'];
  /** Readers that each connection was to have, or was told to have later. */
  readonly workers: number[] = [];
  /** Whether its readers change their number when they are told to, without a new connection. */
  follows = false;
  /** Set to make it refuse readers, and to throw out those that are connected. */
  failure: Error | undefined;

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Puts a message in; resolves with the outcome that acknowledged it. */
  send(body: string | Uint8Array | object, fields: Partial<Message> = {}): Promise<Outcome> {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
    const message: Message = { coordinates: `memory/0/${last++}`, timestamp: Date.now(), body: bytes, headers: {}, ...fields };
    return new Promise((settled) => {
      this.#waiting.push({ message, settled });
      this.#wake();
    });
  }

  /** Throws every reader out. */
  fail(failure: Error): void {
    this.failure = failure;
    this.#wake();
  }

  async read(handle: (message: Message) => Promise<Outcome>, context: SourceContext, password: string): Promise<void> {
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

  /** Resolves when something has come or was settled, or the signal aborts. */
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
