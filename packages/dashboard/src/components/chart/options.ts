import type uPlot from 'uplot';

export interface Line {
  readonly label: string;
  readonly colour: 'ok' | 'bad' | 'accent' | 'warn' | 'muted';
  readonly values: readonly (number | null)[];
}

/** Resolves a colour for the current theme: a canvas does not know CSS variables. */
function resolved(element: Element, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const HOUR_SECONDS = 3_600;

/** `14:30`, or `25 Nov` for daily ticks. */
function tickTime(seconds: number, stepSeconds: number): string {
  const date = new Date(seconds * 1000);
  const isDay =
    stepSeconds >= 24 * HOUR_SECONDS || (date.getHours() === 0 && date.getMinutes() === 0);
  return date.toLocaleString(
    'en-GB',
    isDay ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' },
  );
}

export function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  {
    height,
    format,
    onPoint,
  }: { height: number; format: (value: number) => string; onPoint: (index: number | null) => void },
): uPlot.Options {
  const muted = resolved(element, 'muted');
  const grid = { stroke: resolved(element, 'border'), width: 1 };
  const font = '12px system-ui, sans-serif';
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        stroke: muted,
        grid: { show: false },
        ticks: grid,
        font,
        space: 64,
        values: (_, ticks, __, ___, step) => ticks.map((at) => tickTime(at, step)),
      },
      {
        stroke: muted,
        grid,
        ticks: { show: false },
        font,
        size: 56,
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
