import type { ActivatedPlugins, ActiveSource } from '@gateway/core/plugins';

type SourcePlugin = Awaited<ReturnType<ActiveSource['load']>>;
type Handle = Parameters<SourcePlugin['run']>[1];
type Message = Parameters<Handle>[0];
export type Outcome = Awaited<ReturnType<Handle>>;

/** What happens to one message. Times are in epoch milliseconds. */
export interface Watched {
  readonly read: Promise<{ readonly atMs: number; readonly message: Message }>;
  /** After the commit, before the acknowledgement. */
  readonly settled: Promise<{ readonly atMs: number; readonly outcome: Outcome }>;
}

/** Watches one message among those that the sources read. */
export class MessageWatch {
  #wanted:
    { readonly body: Buffer; readonly onRead: (message: Message) => void; readonly onSettled: (outcome: Outcome) => void } | undefined;

  /** Watches the next message with this body. */
  expect(body: string): Watched {
    let onRead: (message: Message) => void;
    let onSettled: (outcome: Outcome) => void;
    const read: Watched['read'] = new Promise((resolve) => (onRead = (message) => resolve({ atMs: Date.now(), message })));
    const settled: Watched['settled'] = new Promise((resolve) => (onSettled = (outcome) => resolve({ atMs: Date.now(), outcome })));
    this.#wanted = { body: Buffer.from(body), onRead: onRead!, onSettled: onSettled! };
    return { read, settled };
  }

  /** The plugins with sources that are watched. */
  plugins(plugins: ActivatedPlugins): ActivatedPlugins {
    const watched = (plugin: SourcePlugin): SourcePlugin => ({
      check: (connection, context) => plugin.check(connection, context),
      run: (connection, handle, context) => plugin.run(connection, (message) => this.#handle(message, handle), context),
    });
    const sources = [...plugins.sources].map(
      ([kind, source]) => [kind, { ...source, load: async () => watched(await source.load()) }] as const,
    );
    return { ...plugins, sources: new Map(sources) };
  }

  async #handle(message: Message, handle: Handle): Promise<Outcome> {
    const wanted = this.#wanted?.body.equals(message.body) ? this.#wanted : undefined;
    if (wanted) this.#wanted = undefined;
    wanted?.onRead(message);
    const outcome = await handle(message);
    wanted?.onSettled(outcome);
    return outcome;
  }
}
