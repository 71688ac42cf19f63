import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { theme } from '../session/theme.js';
import { Time } from './data.js';

const HEIGHT_PX = 150;

/**
 * For screen readers, the legend shows the last values, and `summary` describes the chart.
 *
 * @param props.atMs in ascending order
 */
export function TimeChart({
  title,
  summary,
  atMs,
  lines,
  format,
  empty = 'No data in this time range.',
  max,
}: {
  title: string;
  summary: string;
  atMs: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
  empty?: string;
  /** The fixed end of the axis. With it, zero is a value like others. */
  max?: number;
}) {
  const isEmpty =
    atMs.length > 0 &&
    lines.every(({ values }) =>
      values.every((it) => it === null || (max === undefined && it === 0)),
    );
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const [point, setPoint] = useState<number | null>(null);
  const data: uPlot.AlignedData = [
    atMs.map((ms) => ms / 1000),
    ...lines.map(({ values }) => [...values]),
  ];
  const shape = lines.map(({ label, colour }) => `${label} ${colour}`).join();

  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const draw = () => {
      chart.current?.destroy();
      chart.current = new uPlot(
        optionsOf(element, lines, { height: HEIGHT_PX, format, max, onPoint: setPoint }),
        data,
        element,
      );
    };
    draw();
    const resized = new ResizeObserver(() =>
      chart.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX }),
    );
    resized.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', draw);
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [shape, theme.value]);

  useEffect(() => chart.current?.setData(data), [atMs, lines]);

  const index = point ?? atMs.length - 1;
  const at =
    point === null || atMs[index] === undefined ? undefined : new Date(atMs[index]).toISOString();
  return (
    <figure class="time-chart">
      <figcaption>{title}</figcaption>
      <Legend lines={lines} at={at} index={index} format={format} />
      <div ref={place} class="time-chart-plot" role="img" aria-label={`${title}. ${summary}`} />
      {isEmpty && <p class="time-chart-empty">{empty}</p>}
    </figure>
  );
}

function Legend({
  lines,
  at,
  index,
  format,
}: {
  lines: readonly Line[];
  at: string | undefined;
  index: number;
  format: (value: number) => string;
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

export interface Line {
  readonly label: string;
  readonly colour: 'ok' | 'bad' | 'accent' | 'warn' | 'muted';
  readonly values: readonly (number | null)[];
}

/** A canvas cannot use CSS variables. */
function resolved(element: Element, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const HOUR_SECONDS = 3_600;

/** Such as `14:30`, or `25 Nov` if the tick marks a day. */
function tickTime(seconds: number, stepSeconds: number): string {
  const date = new Date(seconds * 1000);
  const isDay =
    stepSeconds >= 24 * HOUR_SECONDS || (date.getHours() === 0 && date.getMinutes() === 0);
  return date.toLocaleString(
    'en-GB',
    isDay ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' },
  );
}

function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  {
    height,
    format,
    max: end,
    onPoint,
  }: {
    height: number;
    format: (value: number) => string;
    max: number | undefined;
    onPoint: (index: number | null) => void;
  },
): uPlot.Options {
  const muted = resolved(element, 'muted');
  const grid = { stroke: resolved(element, 'border'), width: 1 };
  const font = '11px system-ui, sans-serif';
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, end ?? (max > 0 ? max * 1.1 : 1)] } },
    axes: [
      {
        stroke: muted,
        grid: { show: false },
        ticks: grid,
        font,
        space: 64,
        size: 28,
        values: (_, ticks, __, ___, step) => ticks.map((at) => tickTime(at, step)),
      },
      {
        stroke: muted,
        grid,
        ticks: { show: false },
        font,
        size: 48,
        space: 36,
        values: (_, ticks) => ticks.map(format),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour }, index): uPlot.Series => {
        const stroke = resolved(element, colour);
        return {
          label,
          stroke,
          width: 1.5,
          points: { show: false },
          ...(index === 0 ? { fill: resolved(element, `${colour}-soft`) } : {}),
        };
      }),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}
