import { signal } from '@preact/signals';

export interface Shortcut {
  /** `j`, `?`, or two keys after one another: `g e`. */
  readonly keys: string;
  /** For the help: `Next row`. */
  readonly label: string;
  readonly run: () => void;
}

/** Those of what is shown, for the help; the newest first. */
export const shortcuts = signal<readonly Shortcut[]>([]);

/** How long the second of two keys may take. */
const PAUSE_MS = 1_000;
let first: { readonly key: string; readonly atMs: number } | undefined;

/** Listens to the keyboard. Of equal keys the newest shortcut runs. */
export function startShortcuts(): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.composedPath()[0])) return;
    const two = first && event.timeStamp - first.atMs < PAUSE_MS ? `${first.key} ${event.key}` : undefined;
    const found = shortcuts.value.find(({ keys }) => keys === two) ?? shortcuts.value.find(({ keys }) => keys === event.key);
    first = found ? undefined : { key: event.key, atMs: event.timeStamp };
    if (!found) return;
    event.preventDefault();
    found.run();
  });
}

/** Letters belong to the field that is typed into, in a shadow root too; a dialog has keys of its own. */
function isTyping(target: EventTarget | undefined): boolean {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable], dialog') !== null;
}
