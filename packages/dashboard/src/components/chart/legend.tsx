import { Time } from '../data/time.js';
import type { Line } from './options.js';

/** The lines of a chart with their values at the pointer, or the last ones. */
export function Legend({
  lines,
  at,
  index,
  format,
}: {
  readonly lines: readonly Line[];
  readonly at: string | undefined;
  readonly index: number;
  readonly format: (value: number) => string;
}) {
  return (
    <ul class="legend">
      {lines.map(({ label, colour, values }) => {
        const value = values[index];
        return (
          <li key={label}>
            <span class={`legend-mark ${colour}`} />
            {label}{' '}
            <strong class="number">
              {value === null || value === undefined ? '–' : format(value)}
            </strong>
          </li>
        );
      })}
      {at && (
        <li class="muted legend-time">
          <Time at={at} look="row" />
        </li>
      )}
    </ul>
  );
}
