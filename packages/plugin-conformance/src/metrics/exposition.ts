import type { Labels } from '@gateway/plugin';
import { Broken } from '../run/rule.js';

const META = /^# (HELP|TYPE) (\S+) ?(.*)$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)/;

export interface Family {
  readonly name: string;
  /** Undefined if the backend writes no `# TYPE` line. */
  readonly type?: string;
  readonly help?: string;
  /**
   * The samples of the series. A histogram has cumulative `<name>_bucket` samples with the `le`
   * label, a `<name>_sum` and a `<name>_count`.
   */
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

/**
 * Parses the Prometheus text format:
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 * @throws `Broken` with the line, if a line is invalid
 */
export function readExposition(text: string): Family[] {
  const families = new Map<
    string,
    { name: string; type?: string; help?: string; samples: Sample[] }
  >();
  const family = (name: string) => {
    const known = families.get(name) ?? { name, samples: [] };
    families.set(name, known);
    return known;
  };
  for (const line of text.split('\n')) {
    const meta = META.exec(line);
    if (meta) {
      const [, kind, name = '', words = ''] = meta;
      if (kind === 'TYPE') family(name).type = words;
      else family(name).help = unescaped(words, /\\(\\|n)/g);
    } else if (line !== '' && !line.startsWith('#')) {
      const sample = sampleOf(line);
      const base = sample.name.replace(/_(bucket|sum|count)$/, '');
      family(families.get(base)?.type === 'histogram' ? base : sample.name).samples.push(sample);
    }
  }
  return [...families.values()];
}

function sampleOf(line: string): Sample {
  const [, name = '', given = '', value = ''] = SAMPLE.exec(line) ?? [];
  const number = Number(value.replace('Inf', 'Infinity'));
  if (name === '' || (Number.isNaN(number) && value !== 'NaN'))
    throw new Broken(`a line is not of the text format: ${line}`);
  const labels: Record<string, string> = {};
  for (let rest = given; rest !== '';) {
    const [all = '', label = '', text = ''] = LABEL.exec(rest) ?? [];
    if (all === '') throw new Broken(`the labels of a line are not of the text format: ${line}`);
    labels[label] = unescaped(text, /\\(\\|n|")/g);
    rest = rest.slice(all.length);
  }
  return { name, labels, value: number };
}

function unescaped(text: string, escapes: RegExp): string {
  return text.replaceAll(escapes, (_, sign: string) => (sign === 'n' ? '\n' : sign));
}
