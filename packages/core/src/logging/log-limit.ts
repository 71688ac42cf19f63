/** Lines of one level and sentence that a process writes per window, and as many again about subjects that had none yet. */
export interface LogLimit {
  readonly lines: number;
  readonly windowMs: number;
}

/** Sentences beyond this number share one limit. */
const SENTENCES_MAX = 500;
const OTHERS = 'Lines of many kinds';

/**
 * Limits repeated lines, so that a frequent event cannot fill the disk. Returns a function that says whether one more line of this level and
 * sentence, about this subject, may be written. `tell` writes how many were left out, when the window or the process ends.
 */
export function limitLines<Level extends string>(
  { lines, windowMs }: LogLimit,
  tell: (level: Level, sentence: string, leftOut: number) => void,
): (level: Level, sentence: string, subject: string) => boolean {
  const counts = new Map<string, { level: Level; sentence: string; subjects: Set<string>; written: number; leftOut: number }>();
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
