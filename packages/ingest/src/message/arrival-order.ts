import type { SourceMessage } from './source-message.js';

/**
 * Passes on the messages of each source of an ordered project in the order in which they came,
 * whichever was decoded or transformed first.
 */
export class ArrivalOrder {
  /** By source: each message, and whether it is ready. */
  readonly #lanes = new Map<string, Map<SourceMessage, boolean>>();

  constructor(private readonly pass: (message: SourceMessage) => void) {}

  enter(message: SourceMessage): void {
    const { id } = message.source;
    const lane = this.#lanes.get(id);
    if (lane) lane.set(message, false);
    else this.#lanes.set(id, new Map([[message, false]]));
  }

  /** Passes it on, at once if it has not entered. */
  ready(message: SourceMessage): void {
    const lane = this.#lanes.get(message.source.id);
    if (!lane?.has(message)) return this.pass(message);
    lane.set(message, true);
    this.#flush(message.source.id, lane);
  }

  /** Without being passed on. */
  leave(message: SourceMessage): void {
    const lane = this.#lanes.get(message.source.id);
    if (lane?.delete(message)) this.#flush(message.source.id, lane);
  }

  /**
   * Its broker keeps it, so all behind it must stay there too. Returns these, which are no longer
   * passed on.
   */
  cut(message: SourceMessage): readonly SourceMessage[] {
    const lane = this.#lanes.get(message.source.id);
    if (!lane?.has(message)) return [];
    const all = [...lane.keys()];
    const behind = all.slice(all.indexOf(message));
    for (const one of behind) lane.delete(one);
    if (lane.size === 0) this.#lanes.delete(message.source.id);
    return behind.slice(1);
  }

  #flush(id: string, lane: Map<SourceMessage, boolean>): void {
    for (const [message, isReady] of lane) {
      if (!isReady) return;
      lane.delete(message);
      this.pass(message);
    }
    this.#lanes.delete(id);
  }
}
