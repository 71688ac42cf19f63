import { useRef } from 'preact/hooks';
import { useShortcuts } from './use-shortcuts.js';

/**
 * `j` and `k` move through rows.
 *
 * @param count number of rows
 * @param focus scrolls to a row and focuses it
 * @returns records that a row received the focus otherwise
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
