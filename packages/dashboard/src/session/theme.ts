import { signal } from '@preact/signals';
import { storeOf } from '../router/storage.js';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'gateway-theme';
const store = storeOf('localStorage');

/** The selected theme. `system` follows the browser. */
export const theme = signal<Theme>((store.get(KEY) as Theme | null) ?? 'system');

/** Returns a custom property of the style sheets, where an operator may replace it. */
function styled(name: string): string {
  if (typeof document === 'undefined') return '';
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The name of the product. */
export const brandName = styled('--brand-name').replaceAll(/^["']|["']$/g, '') || 'Gateway';

/** Shows the mark of the product as the icon of the window. */
export function showMark(): void {
  const [, address] = /^url\(["']?(.*?)["']?\)$/.exec(styled('--brand-mark')) ?? [];
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (address && icon) icon.href = address;
}

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
