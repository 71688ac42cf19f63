import { signal } from '@preact/signals';
import { sentenceOf } from './problem.js';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: 'ok' | 'bad';
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, tone: Toast['tone'] = 'ok'): void {
  const id = ++last;
  toasts.value = [...toasts.value, { id, text, tone }];
  setTimeout(
    () => (toasts.value = toasts.value.filter((it) => it.id !== id)),
    tone === 'bad' ? 2 * SHOWN_MS : SHOWN_MS,
  );
}

export function toastError(error: unknown): void {
  toast(sentenceOf(error as Error), 'bad');
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone }) => (
        <p key={id} class={tone}>
          {text}
        </p>
      ))}
    </div>
  );
}
