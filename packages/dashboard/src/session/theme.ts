import { signal } from '@preact/signals';
import { storeOf } from '../router/storage.js';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'gateway-theme';
const store = storeOf('localStorage');

/** `system` follows the browser. */
export const theme = signal<Theme>((store.get(KEY) as Theme | null) ?? 'system');

/** An operator may replace custom properties of the style sheets. */
function styled(name: string): string {
  if (typeof document === 'undefined') return '';
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const brandName = styled('--brand-name').replaceAll(/^["']|["']$/g, '') || 'Gateway';

export function showMark(): void {
  const [, address] = /^url\(["']?(.*?)["']?\)$/.exec(styled('--brand-mark')) ?? [];
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (address && icon) icon.href = address;
}

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
