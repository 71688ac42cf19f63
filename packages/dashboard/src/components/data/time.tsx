import { signal } from '@preact/signals';
import { localTime, relative, rowTime, utcTime } from '../../format/time.js';

/** Ticks every second, for relative times. */
const now = signal(Date.now());
if (typeof document !== 'undefined')
  setInterval(() => document.hidden || (now.value = Date.now()), 1_000);

/** A time in the browser's zone, with UTC as tooltip. */
export function Time({
  at,
  look = 'full',
}: {
  readonly at: string;
  readonly look?: 'full' | 'row' | 'relative';
}) {
  const text =
    look === 'row' ? rowTime(at) : look === 'relative' ? relative(at, now.value) : localTime(at);
  return (
    <time
      class="number"
      dateTime={at}
      title={look === 'full' ? utcTime(at) : `${localTime(at)} (${utcTime(at)})`}
    >
      {text}
    </time>
  );
}

/** A time as read in an incident: local, UTC and relative. */
export function FullTime({ at }: { readonly at: string }) {
  return (
    <>
      <Time at={at} /> <span class="muted number">({utcTime(at)}, </span>
      <span class="muted">
        <Time at={at} look="relative" />)
      </span>
    </>
  );
}
