import { round } from '../figures.js';
import type { Figures } from './burst.js';

export interface Measured {
  readonly size: number;
  readonly figures: Figures;
}

/** Returns the CPU of the gateway and of Postgres per request, in milliseconds. */
export function cpuMs({ gatewayMs, postgresMs }: Figures): number {
  return gatewayMs + postgresMs;
}

/**
 * Returns the exponent e of amount = c · size^e, by least squares of the logarithms; 0 if the
 * amount does not depend on the size.
 */
export function exponent(
  measured: readonly Measured[],
  amount: (figures: Figures) => number,
): number {
  const points = measured.map(({ size, figures }) => [Math.log(size), Math.log(amount(figures))]);
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at]!, 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [a]) => sum + (a! - x) ** 2, 0);
  return points.reduce((sum, [a, b]) => sum + (a! - x) * (b! - y), 0) / spread;
}

/** Returns a table in Markdown of what a request costs at each size, and its exponents. */
export function tableOf(name: string, measured: readonly Measured[]): string {
  const least = cpuMs(measured[0]!.figures);
  const rows = measured.map(({ size, figures: it }) => [
    round(size),
    round(it.perSecond),
    it.gatewayMs.toFixed(3),
    it.postgresMs.toFixed(3),
    (cpuMs(it) / least).toFixed(2),
    it.statements.toFixed(3),
    it.kvCommands.toFixed(3),
    it.walKb.toFixed(2),
    round(it.peakMb),
    it.idleCpu.toFixed(1),
  ]);
  const head = [
    name,
    'requests/s',
    'CPU ms: gateway',
    'Postgres',
    'both, ratio',
    'statements',
    'KV commands',
    'WAL kB',
    'largest process MB',
    'idle, % of a core',
  ];
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(head),
    `|${head.map(() => '---|').join('')}`,
    ...rows.map(line),
    ...(measured.length > 1 ? ['', exponentsOf(measured)] : []),
  ].join('\n');
}

function exponentsOf(measured: readonly Measured[]): string {
  const of = (amount: (figures: Figures) => number) =>
    exponent(measured, amount).toFixed(3).replace('-', '−');
  return `Exponents: CPU ${of(cpuMs)}, statements ${of(({ statements }) => statements)}, requests/s ${of(({ perSecond }) => perSecond)}.`;
}

/** Returns a chart in Mermaid: the CPU of a request at the largest size, relative to the smallest. */
export function chartOf(all: ReadonlyMap<string, readonly Measured[]>): string {
  const bars = [...all].map(([name, measured]) => ({
    label: `${round(measured.at(-1)!.size)} ${name}`,
    ratio: cpuMs(measured.at(-1)!.figures) / cpuMs(measured[0]!.figures),
  }));
  return [
    '```mermaid',
    'xychart-beta',
    '  title "CPU per request at the largest size, relative to the smallest (line: 1.15)"',
    `  x-axis [${bars.map(({ label }) => JSON.stringify(label)).join(', ')}]`,
    `  y-axis "ratio" 0 --> ${Math.max(1.5, ...bars.map(({ ratio }) => ratio)).toFixed(1)}`,
    `  bar [${bars.map(({ ratio }) => ratio.toFixed(2)).join(', ')}]`,
    `  line [${bars.map(() => '1.15').join(', ')}]`,
    '```',
  ].join('\n');
}
