import { signal } from '@preact/signals';

export interface Shortcut {
  /** A key (`j`, `?`) or a sequence of two: `g e`. */
  readonly keys: string;
  /** Text for the help: `Next row`. */
  readonly label: string;
  readonly run: () => void;
}

/** The available shortcuts, newest first. */
export const shortcuts = signal<readonly Shortcut[]>([]);

/** The maximum pause between two keys of a sequence. */
const PAUSE_MS = 1_000;
let first: { readonly key: string; readonly atMs: number } | undefined;

/** Listens to the keyboard. The newest of equal shortcuts wins. */
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

/**
 * Keys belong to a field with the focus, also in a shadow root; a dialog handles its keys itself.
 */
function isTyping(target: EventTarget | undefined): boolean {
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable], dialog') !== null
  );
}
