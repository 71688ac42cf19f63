import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'gateway-theme';

/** The chosen colours; `system` follows the browser. */
export const theme = signal<Theme>(
  (typeof localStorage === 'undefined' ? undefined : (localStorage.getItem(KEY) as Theme | null)) ?? 'system',
);

/** Changes the colours, in this browser, from now on. */
export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  const { dataset } = document.documentElement;
  if (chosen === 'system') {
    localStorage.removeItem(KEY);
    delete dataset['theme'];
  } else {
    localStorage.setItem(KEY, chosen);
    dataset['theme'] = chosen;
  }
}
