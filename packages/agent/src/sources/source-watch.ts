import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { openConnection, type Open } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { ActiveSource, PluginState } from '@gateway/core/plugins';
import { backoffMs } from '@gateway/core/process';
import type { SourceRecord } from '@gateway/store/config';
import type { SourceLags } from './source-lags.js';

export interface SourceWatchOptions {
  readonly plugins: ReadonlyMap<string, Omit<ActiveSource, 'manifest'>>;
  /** Includes inactive plugins, with the reasons. */
  readonly pluginTable?: readonly PluginState[];
  readonly openSecret: Open;
  readonly log: Log;
  readonly lags?: SourceLags | undefined;
  /** For the operator. Null clears it. */
  readonly advise: (advice: string | null) => void;
  readonly startsInMs: number;
}

/**
 * Runs `watch` of an enabled source's plugin, and restarts it after failures, which `run` reports
 * to health.
 */
export class SourceWatch {
  readonly #stop = new AbortController();
  readonly #connectionKey: string;
  readonly #ended: Promise<void>;

  constructor(
    private readonly record: SourceRecord,
    private readonly options: SourceWatchOptions,
  ) {
    this.#connectionKey = connectionKeyOf(record);
    options.lags?.begin({ projectId: record.project_id, id: record.id });
    this.#ended = this.#supervise();
  }

  accepts(record: SourceRecord): boolean {
    return connectionKeyOf(record) === this.#connectionKey;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #supervise(): Promise<void> {
    const { log, lags, advise } = this.options;
    const { signal } = this.#stop;
    await sleep(this.options.startsInMs, undefined, { signal }).catch(() => undefined);
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        if (!(await this.#watch())) return;
      } catch (error) {
        log.debug({ error, source_id: this.record.id }, 'Could not watch a source; retrying.');
      }
      if (signal.aborted) return;
      lags?.forgetLag(this.record.id);
      advise(null);
      await sleep(backoffMs(failures, { baseMs: 1_000, capMs: 30_000 }), undefined, {
        signal,
      }).catch(() => undefined);
    }
  }

  /** Until the source stops or `watch` fails. Resolves with false if there is none. */
  async #watch(): Promise<boolean> {
    const { plugins, openSecret, log, lags, advise } = this.options;
    const active = plugins.get(this.record.pub_sub.type);
    const plugin = await active?.load();
    if (!active || !plugin?.watch) return false;
    const { signal } = this.#stop;
    await plugin.watch(connectionOf(this.record, active, openSecret), {
      settings: active.settings,
      sourceId: this.record.id,
      workers: this.record.pub_sub.workers ?? 1,
      signal,
      clientId: clientIdOf(this.record),
      log: log.child({ source_id: this.record.id }),
      lag: (partition, messages, offsets) =>
        void (signal.aborted || lags?.tell(this.record.id, partition, messages, offsets)),
      advise: (advice) => void (signal.aborted || advise(advice === null ? null : String(advice))),
    });
    return true;
  }
}

/** Changes when the source must reconnect. */
export function connectionKeyOf(record: SourceRecord): string {
  return JSON.stringify([record.project_id, record.pub_sub]);
}

export function connectionOf(
  { id, pub_sub: pubSub }: SourceRecord,
  active: Pick<ActiveSource, 'connectionSchema'>,
  open: Open,
) {
  return openConnection(
    (pubSub[pubSub.type] ?? {}) as Readonly<Record<string, unknown>>,
    active.connectionSchema,
    id,
    open,
  );
}

export function clientIdOf({ id }: SourceRecord): string {
  return `gateway-${hostname()}-${process.pid}-${id.slice(-6)}`;
}
