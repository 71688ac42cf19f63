import { useEffect, useRef } from 'preact/hooks';
import { shortcuts, type Shortcut } from './shortcuts.js';

/** Registers shortcuts while the component is mounted. */
export function useShortcuts(offered: readonly Shortcut[]): void {
  const latest = useRef(offered);
  latest.current = offered;
  const names = offered.map(({ keys, label }) => `${keys} ${label}`).join('\n');
  useEffect(() => {
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
