import type { ActivatedPlugins, ActiveSource } from '@gateway/core/plugins';

type SourcePlugin = Awaited<ReturnType<ActiveSource['load']>>;
type Handle = Parameters<SourcePlugin['run']>[1];
type Context = Parameters<SourcePlugin['run']>[2];
export type Message = Parameters<Handle>[0];
export type Outcome = Awaited<ReturnType<Handle>>;
/** How a source stands. */
export type State = Parameters<Context['report']>[0];

/** Is told what the sources of this process do. */
export interface Observer {
  /** `reading`, `failing` with the reason, or `connecting`. */
  onState(source: string, state: State, reason?: string): void;
  /** A message was read; what it returns is told the outcome, after the commit and before the acknowledgement. */
  onMessage(source: string, message: Message): (outcome: Outcome) => void;
}

/** The plugins with sources that tell the observer, and are otherwise what they were. A source is named as in `queue orders`. */
export function observed(plugins: ActivatedPlugins, observer: Observer): ActivatedPlugins {
  const sources = new Map(
    [...plugins.sources].map(([kind, source]) => [kind, { ...source, load: async () => observedPlugin(await source.load(), observer) }]),
  );
  return { ...plugins, sources };
}

function observedPlugin(plugin: SourcePlugin, observer: Observer): SourcePlugin {
  return {
    check: (connection, context) => plugin.check(connection, context),
    async run(connection, handle, context) {
      const source = nameOf(connection);
      const report: Context['report'] = (state, reason) => {
        observer.onState(source, state, reason);
        context.report(state, reason);
      };
      const observedHandle: Handle = async (message) => {
        const settled = observer.onMessage(source, message);
        const outcome = await handle(message);
        settled(outcome);
        return outcome;
      };
      try {
        await plugin.run(connection, observedHandle, { ...context, report });
      } catch (error) {
        const { message, fix } = error as Error & { fix?: string };
        if (!context.signal.aborted) observer.onState(source, 'failing', fix === undefined ? message : `${message} ${fix}`);
        throw error;
      }
    },
  };
}

function nameOf({ queue_name: queue, topic_name: topic }: Readonly<Record<string, unknown>>): string {
  if (typeof queue === 'string') return `queue ${queue}`;
  return typeof topic === 'string' ? `topic ${topic}` : 'source';
}
