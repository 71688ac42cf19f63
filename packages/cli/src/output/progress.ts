/** Where a bar is drawn; nothing is drawn unless it is a terminal. */
export type ProgressStream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>;

export interface Progress {
  /** Shows how much is done, from 0 to 1, and a few words. */
  show(done: number, words: string): void;
  /** Removes the bar, so that what is printed next begins a line. */
  end(): void;
}

/** Shortest time between two drawings. */
const EVERY_MS = 100;
const BAR_COLUMNS = 30;
const CLEAR_LINE = '\r\x1b[2K';

/** A bar on standard error for work that takes a while. It draws on a terminal only, in one line, however narrow that is. */
export function progressBar({ silent = false, stream = process.stderr }: { silent?: boolean; stream?: ProgressStream } = {}): Progress {
  if (silent || !stream.isTTY) return { show() {}, end() {} };
  let drawnAtMs = -Infinity;
  return {
    show(done, words) {
      if (performance.now() - drawnAtMs < EVERY_MS) return;
      drawnAtMs = performance.now();
      const columns = (stream.columns || 80) - 1;
      const percent = `${String(Math.floor(Math.min(1, Math.max(0, done)) * 100)).padStart(3)} %  ${words}`;
      const bar = Math.min(BAR_COLUMNS, columns - percent.length - 3);
      const filled = Math.round(bar * Math.min(1, Math.max(0, done)));
      const drawn = bar >= 5 ? `[${'#'.repeat(filled)}${'.'.repeat(bar - filled)}] ${percent}` : percent;
      stream.write(CLEAR_LINE + drawn.slice(0, columns));
    },
    end() {
      if (drawnAtMs > -Infinity) stream.write(CLEAR_LINE);
    },
  };
}
