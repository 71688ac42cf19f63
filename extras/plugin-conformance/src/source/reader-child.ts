import type { SourcePlugin } from '@gateway/plugin';
import type { ReaderOptions } from './reader-process.js';

/** The child process of `readerProcess`: runs the plugin, reports each message and settles none. */
process.once('message', (given: ReaderOptions & { readonly module: string }) => void read(given));
process.once('disconnect', () => process.exit());

async function read({
  module,
  connection,
  ...options
}: ReaderOptions & { readonly module: string }): Promise<void> {
  const { default: plugin } = (await import(module)) as { readonly default: SourcePlugin };
  const none = () => {};
  const handle = () => {
    process.send!('handed');
    return new Promise<never>(none);
  };
  await plugin.run(connection, handle, {
    ...options,
    window: 100,
    workers: 1,
    signal: new AbortController().signal,
    clientId: `conformance-${process.pid}`,
    log: { debug: none, info: none, warn: none, error: none },
    report: none,
  });
  throw new Error('`run` resolved before its signal aborted');
}
