import { signal } from '@preact/signals';
import { storeOf } from '../router/storage.js';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'gateway-theme';
const store = storeOf('localStorage');

/** The selected theme. `system` follows the browser. */
export const theme = signal<Theme>((store.get(KEY) as Theme | null) ?? 'system');

/** Applies a theme and stores the choice in this browser. */
export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  const { dataset } = document.documentElement;
  if (chosen === 'system') {
    store.remove(KEY);
    delete dataset['theme'];
  } else {
    store.set(KEY, chosen);
    dataset['theme'] = chosen;
  }
}
