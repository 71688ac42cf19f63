/** How many lines of one level and sentence a process writes in a window of time. */
export interface LogLimit {
  readonly lines: number;
  readonly windowMs: number;
}

/** A sentence is a constant: what differs between its lines are the fields. Those with more sentences than this share one limit. */
const SENTENCES_MAX = 500;
const OTHERS = 'Lines of many kinds';

/**
 * Counts lines, so that nothing that happens ten thousand times fills a disk: beyond the limit of a sentence a line is left out, and when the
 * window is over it is told how many there were.
 *
 * @param tell writes how many lines of a sentence were left out
 * @returns whether one more line of this level and sentence may be written
 */
export function limitLines<Level extends string>(
  { lines, windowMs }: LogLimit,
  tell: (level: Level, sentence: string, leftOut: number) => void,
): (level: Level, sentence: string) => boolean {
  const counts = new Map<string, { readonly level: Level; readonly sentence: string; said: number }>();
  const closeWindow = () => {
    for (const { level, sentence, said } of counts.values()) if (said > lines) tell(level, sentence, said - lines);
    counts.clear();
  };
  return (level, sentence) => {
    if (counts.size === 0) setTimeout(closeWindow, windowMs).unref();
    const known = counts.has(`${level} ${sentence}`) || counts.size < SENTENCES_MAX;
    const counted = known ? sentence : OTHERS;
    const key = `${level} ${counted}`;
    let count = counts.get(key);
    if (!count) counts.set(key, (count = { level, sentence: counted, said: 0 }));
    count.said++;
    return count.said <= lines;
  };
}
