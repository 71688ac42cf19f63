import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface Shortcut {
  /** A key, such as `j` or `?`, or a sequence of two, such as `g e`. */
  readonly keys: string;
  readonly label: string;
  readonly run: () => void;
}

export const shortcuts = signal<readonly Shortcut[]>([]);

const PAUSE_MS = 1_000;
let first: { readonly key: string; readonly atMs: number } | undefined;

/** Among shortcuts with the same keys, the newest is used. */
export function startShortcuts(): void {
  addEventListener('keydown', (event) => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.defaultPrevented ||
      isTyping(event.composedPath()[0])
    )
      return;
    const two =
      first && event.timeStamp - first.atMs < PAUSE_MS ? `${first.key} ${event.key}` : undefined;
    const found =
      shortcuts.value.find(({ keys }) => keys === two) ??
      shortcuts.value.find(({ keys }) => keys === event.key);
    first = found ? undefined : { key: event.key, atMs: event.timeStamp };
    if (!found) return;
    event.preventDefault();
    found.run();
  });
}

/** Dialogs and fields, even in a shadow root, handle their own keys. */
function isTyping(target: EventTarget | undefined): boolean {
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable], dialog') !== null
  );
}

export function useShortcuts(offered: readonly Shortcut[]): void {
  const latest = useRef(offered);
  latest.current = offered;
  const names = offered.map(({ keys, label }) => `${keys} ${label}`).join('\n');
  // Before the paint, so that a key pressed at once is not lost.
  useLayoutEffect(() => {
    if (names === '') return undefined;
    const added = latest.current.map(({ keys, label }, index) => ({
      keys,
      label,
      run: () => latest.current[index]?.run(),
    }));
    shortcuts.value = [...added, ...shortcuts.peek()];
    return () => {
      shortcuts.value = shortcuts.peek().filter((it) => !added.includes(it));
    };
  }, [names]);
}

/**
 * `j` and `k` move through rows.
 *
 * @param focus scrolls to a row and focuses it
 * @returns a function to call when a row is focused in another way
 */
export function useRowKeys(count: number, focus: (index: number) => void): (index: number) => void {
  const at = useRef(-1);
  const move = (step: number) => {
    const next = Math.min(Math.max(at.current + step, 0), count - 1);
    if (next < 0) return;
    at.current = next;
    focus(next);
  };
  useShortcuts([
    { keys: 'j', label: 'Next row', run: () => move(1) },
    { keys: 'k', label: 'Previous row', run: () => move(-1) },
  ]);
  return (index) => void (at.current = index);
}
