import { clip } from '@gateway/core/json';
import { PluginError, type ReadBefore } from '@gateway/plugin';
import {
  keptSinceMs,
  readPositions,
  recordPositions,
  type NewPosition,
  type SourceOf,
  type SourcePositions,
} from '@gateway/store/config';
import type { ProcessContext } from '../config/agent-context.js';

const EVERY_MS = 5_000;

/** The partitions of a source, for third-party plugins. */
const NAMES_MAX = 10_000;
const TEXT_MAX = 500;

/** The positions that plugins record, written to Postgres in batches. */
export class RecordedPositions {
  readonly #changed = new Map<string, NewPosition>();
  readonly #timer: NodeJS.Timeout;
  #writing: Promise<void> = Promise.resolve();

  constructor(private readonly options: Pick<ProcessContext, 'config' | 'database' | 'log'>) {
    this.#timer = setInterval(() => void this.write(), EVERY_MS).unref();
  }

  /** For one run of the source's plugin. */
  of(source: SourceOf): {
    readBefore(): Promise<ReadBefore>;
    record(name: string, position: string): void;
  } {
    let runBeganAt: Date | undefined;
    const names = new Set<string>();
    return {
      readBefore: async () => {
        const { enabled, days } = this.options.config.retention;
        await this.write();
        const { positions, retentionDays, readAt } = await this.#read(source);
        runBeganAt = readAt;
        return {
          positions,
          keptSinceMs: () => (enabled ? keptSinceMs(retentionDays ?? days) : -Infinity),
        };
      },
      record: (name, position) => {
        if (!runBeganAt || (names.size >= NAMES_MAX && !names.has(name))) return;
        names.add(name);
        this.#changed.set(`${source.sourceId} ${name}`, {
          ...source,
          name: clip(String(name), TEXT_MAX, ''),
          position: clip(String(position), TEXT_MAX, ''),
          runBeganAt,
        });
      },
    };
  }

  /** Never rejects. What could not be written is tried again. */
  write(): Promise<void> {
    return (this.#writing = this.#writing.then(() => this.#write()));
  }

  /** Call after the runs have ended, which have written theirs. */
  close(): void {
    clearInterval(this.#timer);
  }

  async #read(source: SourceOf): Promise<SourcePositions> {
    try {
      return await readPositions(this.options.database.pool, source);
    } catch (cause) {
      throw new PluginError(
        'The gateway cannot read how far the source was read before: Postgres does not answer.',
        {
          fix: 'Nothing is to be done at the broker: the source starts when Postgres is back.',
          cause,
        },
      );
    }
  }

  async #write(): Promise<void> {
    const changed = [...this.#changed];
    if (changed.length === 0) return;
    this.#changed.clear();
    try {
      await recordPositions(
        this.options.database.pool,
        changed.map(([, position]) => position),
      );
    } catch (error) {
      this.options.log.debug({ error }, 'Could not record the positions of sources; retrying.');
      for (const [key, position] of changed)
        if (!this.#changed.has(key)) this.#changed.set(key, position);
    }
  }
}
