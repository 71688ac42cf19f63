import { series } from '#core/metrics/series';

/** Labels added by Prometheus, or belonging to a histogram. */
const added = ['job', 'instance', 'le'];

/** A series in an expression, by its name in the table, with the labels of its selector. */
export interface UsedSeries {
  readonly name: string;
  readonly labels: readonly string[];
}

/** The gateway's series in a Prometheus expression, without recorded ones (`gateway:…`). */
export function seriesIn(expression: string): UsedSeries[] {
  return [
    ...expression.matchAll(
      /(?<![\w:$"])((?:gateway|process|nodejs)_\w+)(?![\w:]|\s*=)(?:\{([^}]*)\})?/g,
    ),
  ].map(([, name = '', selector = '']) => ({
    name: rowOf(name),
    labels: [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  }));
}

/** Unknown series and labels in an expression, for which Prometheus silently returns nothing. */
export function mistakesIn(expression: string): string[] {
  const used = seriesIn(expression);
  const known: Readonly<Record<string, { readonly labels: readonly string[] }>> = series;
  const unknown = used
    .filter(({ name }) => !known[name])
    .map(({ name }) => `there is no series ${name}`);
  const labels = used.flatMap(({ name, labels: named }) =>
    named
      .filter((label) => ![...added, ...(known[name]?.labels ?? [])].includes(label))
      .map((label) => `${name} has no label ${label}`),
  );
  const reachable = new Set([...added, ...used.flatMap(({ name }) => known[name]?.labels ?? [])]);
  const grouped = [...expression.matchAll(/\b(?:by|on)\s*\(([^)]*)\)/g)]
    .flatMap(([, names = '']) => names.split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '' && used.length > 0 && !reachable.has(name))
    .map((name) => `nothing in it has the label ${name}`);
  return [...unknown, ...labels, ...grouped];
}

function rowOf(name: string): string {
  const row = name.replace(/_(bucket|sum|count)$/, '');
  return (series as Readonly<Record<string, { readonly type: string }>>)[row]?.type === 'histogram'
    ? row
    : name;
}
