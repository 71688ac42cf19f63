/** How many lines of one level and sentence a process writes in a window of time, and as many again of subjects that had none in it yet. */
export interface LogLimit {
  readonly lines: number;
  readonly windowMs: number;
}

/** A sentence is a constant: what differs between its lines are the fields. Those with more sentences than this share one limit. */
const SENTENCES_MAX = 500;
const OTHERS = 'Lines of many kinds';

/**
 * Counts lines, so that nothing that happens ten thousand times fills a disk: beyond the limit of a sentence a line is left out, and when the
 * window is over, or the process ends, it is told how many there were.
 *
 * @param tell writes how many lines of a sentence were left out
 * @returns whether one more line of this level and sentence, about this subject, may be written
 */
export function limitLines<Level extends string>(
  { lines, windowMs }: LogLimit,
  tell: (level: Level, sentence: string, leftOut: number) => void,
): (level: Level, sentence: string, subject: string) => boolean {
  const counts = new Map<string, Count<Level>>();
  const closeWindow = () => {
    process.off('exit', closeWindow);
    for (const { level, sentence, leftOut } of counts.values()) if (leftOut > 0) tell(level, sentence, leftOut);
    counts.clear();
  };
  return (level, sentence, subject) => {
    if (counts.size === 0) setTimeout(closeWindow, windowMs).unref();
    const known = counts.has(`${level} ${sentence}`) || counts.size < SENTENCES_MAX;
    const counted = known ? sentence : OTHERS;
    const key = `${level} ${counted}`;
    let count = counts.get(key);
    if (!count) counts.set(key, (count = { level, sentence: counted, subjects: new Set(), written: 0, leftOut: 0 }));
    const may = count.written < (known && !count.subjects.has(subject) ? 2 * lines : lines);
    if (may) {
      count.written++;
      count.subjects.add(subject);
    } else if (count.leftOut++ === 0) {
      process.off('exit', closeWindow).on('exit', closeWindow);
    }
    return may;
  };
}

interface Count<Level> {
  readonly level: Level;
  readonly sentence: string;
  /** What the lines that were written are about. */
  readonly subjects: Set<string>;
  written: number;
  leftOut: number;
}
