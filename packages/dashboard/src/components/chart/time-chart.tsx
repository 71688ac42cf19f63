import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { theme } from '../../session/theme.js';
import { Legend } from './legend.js';
import { optionsOf, type Line } from './options.js';

const HEIGHT_PX = 180;

/**
 * Lines over time. Accessible without seeing them: the legend has the last values, and `summary`
 * describes the chart.
 *
 * @param props.atMs times of the values, ascending
 */
export function TimeChart({
  title,
  summary,
  atMs,
  lines,
  format,
}: {
  readonly title: string;
  readonly summary: string;
  readonly atMs: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const [point, setPoint] = useState<number | null>(null);
  const data = [
    atMs.map((ms) => ms / 1000),
    ...lines.map(({ values }) => values),
  ] as unknown as uPlot.AlignedData;
  const shape = lines.map(({ label, colour }) => `${label} ${colour}`).join();

  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const draw = () => {
      chart.current?.destroy();
      chart.current = new uPlot(
        optionsOf(element, lines, { height: HEIGHT_PX, format, onPoint: setPoint }),
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
    </figure>
  );
}
