import { compile, type Instantiate } from './compile.js';
import type { Refusal } from '../protocol/refusals.js';

/** Functions that a process keeps compiled, and characters of their texts in all: they live in the heap that every call may need. */
const MAX_FUNCTIONS = 64;
const MAX_CHARS = 2 * 1024 * 1024;

/**
 * Returns a function that compiles texts, once each as long as they are in use: the one that was not used for longest goes first.
 */
export function makeCompiler(console: object): (key: string, text: string) => Instantiate | Refusal {
  const kept = new Map<string, { text: string; result: Instantiate | Refusal }>();
  let chars = 0;
  const remove = (key: string): void => {
    chars -= kept.get(key)?.text.length ?? 0;
    kept.delete(key);
  };
  return (key, text) => {
    const known = kept.get(key);
    const entry = known?.text === text ? known : { text, result: compile(text, console) };
    remove(key);
    kept.set(key, entry);
    chars += text.length;
    for (const oldest of kept.keys()) {
      if (oldest === key || (kept.size <= MAX_FUNCTIONS && chars <= MAX_CHARS)) break;
      remove(oldest);
    }
    return entry.result;
  };
}
