import { GatewayApiError } from '@gateway/client';
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Resource } from '../api/index.js';
import { capital } from '../format/text.js';
import { errorSentence } from '../portal/errors.js';
import { isPortal } from '../router/location.js';
import { Button } from './layout.js';

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Loading({ lines = 6 }: { lines?: number | undefined }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

export function Loaded<Data>({
  resource,
  lines,
  children,
}: {
  resource: Resource<Data>;
  lines?: number;
  children: (data: Data) => ComponentChildren;
}) {
  const { data, error, refresh } = resource;
  return (
    <>
      {error && <Problem error={error} retry={refresh} />}
      {data === undefined ? !error && <Loading lines={lines} /> : children(data)}
    </>
  );
}

export function Problem({
  error,
  retry,
  children,
}: {
  error: Error;
  retry?: (() => void) | undefined;
  children?: ComponentChildren;
}) {
  const isOfApi = error instanceof GatewayApiError;
  const sentence = isPortal.value
    ? errorSentence(error)
    : isOfApi
      ? sentenceWithoutFix(error)
      : unreachable(error);
  return (
    <div class="problem" role="alert">
      <p class="problem-sentence">{capital(sentence)}</p>
      {isOfApi && error.errors.length > 0 && (
        <ul>
          {error.errors.map(({ field, sentence: about }) => (
            <li key={field}>
              <code>{field}</code> {about}
            </li>
          ))}
        </ul>
      )}
      {isOfApi && !isPortal.value && <p>{capital(error.fix)}</p>}
      {isOfApi && error.requestId && <p class="muted mono">request_id {error.requestId}</p>}
      {children}
      {retry && <Button onPress={retry}>Try again</Button>}
    </div>
  );
}

/**
 * If fields were rejected, only their number: they are listed below, and the message would repeat
 * them.
 */
function sentenceWithoutFix({ code, errors, message, fix }: GatewayApiError): string {
  if (code === 'invalid_request' && errors.length > 0)
    return errors.length === 1 ? 'one field is invalid' : `${errors.length} fields are invalid`;
  return message.slice(0, -(fix.length + 3));
}

function sentenceOf(error: Error): string {
  if (isPortal.value) return errorSentence(error);
  return error instanceof GatewayApiError ? capital(error.message) : unreachable(error);
}

function unreachable(error: Error): string {
  return error.name === 'TypeError' || error.name === 'TimeoutError'
    ? 'The server cannot be reached. Check your network and that the server is running.'
    : error.message;
}

/** @param props.value from 0 to 1 */
export function Progress({ label, value }: { label: string; value: number }) {
  const percent = Math.round(Math.min(Math.max(value, 0), 1) * 100);
  return (
    <div class="progress">
      <progress max={100} value={percent} aria-label={label} />
      <span class="number">{percent}%</span>
    </div>
  );
}

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
