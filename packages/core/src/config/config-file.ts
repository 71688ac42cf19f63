import { readFileSync, statSync } from 'node:fs';
import { fileReason } from '../errors/connection-errors.js';
import { GatewayError } from '../errors/errors.js';
import { didYouMean } from '../errors/suggest.js';
import { jsonMistake } from '../json/json-mistake.js';
import { isObject } from '../json/json-value.js';
import { keysOf, type SettingsTable } from './settings.js';

const DEFAULT_FILE = './gateway.json';

/** A path or content. If undefined, `./gateway.json` is read if it exists. */
export type ConfigFile = string | Readonly<Record<string, unknown>> | undefined;

/** Pipes, such as `--config <(…)`, can be read only once. */
const pipes = new Map<string, string>();

export function readConfigFile(file: ConfigFile): {
  origin: string;
  content: Readonly<Record<string, unknown>>;
  text?: string;
} {
  if (typeof file === 'object') return { origin: 'the configuration', content: file };
  const path = file ?? DEFAULT_FILE;
  let text: string;
  try {
    text = pipes.get(path) ?? readFileSync(path, 'utf8');
    if (!statSync(path).isFile()) pipes.set(path, text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && file === undefined)
      return { origin: path, content: {} };
    throw new GatewayError(
      'config_unreadable',
      { path, reason: fileReason(error) },
      { cause: error },
    );
  }
  text = text.replace(/^\uFEFF/, '');
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new GatewayError('config_not_json', { path, reason: jsonMistake(text, error as Error) });
  }
  if (!isObject(content))
    throw new GatewayError('config_not_json', { path, reason: 'it holds another value' });
  return { origin: path, content, text };
}

/** By dotted key. Unknown keys are reported. */
export function flatten(
  content: Readonly<Record<string, unknown>>,
  rows: SettingsTable,
  report: (key: string, wrong: string, hint?: string) => void,
): Map<string, unknown> {
  const values = new Map<string, unknown>();
  const keys = Object.entries(rows).flatMap(([key, row]) => keysOf(key, row));
  const walk = (object: Readonly<Record<string, unknown>>, prefix: string) => {
    for (const [name, value] of Object.entries(object)) {
      const key = prefix + name;
      if (keys.includes(key)) values.set(key, value);
      else if (!keys.some((known) => known.startsWith(`${key}.`)))
        report(key, 'is not a setting', suggestion(key, rows));
      else if (isObject(value)) walk(value, `${key}.`);
      else report(key, 'must be an object of settings');
    }
  };
  // `$schema` is read by editors and is not a setting:
  // https://json-schema.org/draft/2020-12/json-schema-core#section-8.1.1
  const { $schema: _, ...given } = content;
  walk(given, '');
  return values;
}

function suggestion(key: string, rows: SettingsTable): string {
  const depth = key.split('.').length;
  const known = Object.entries(rows).flatMap(([it, row]) =>
    row.withdrawn === undefined ? keysOf(it, row) : [],
  );
  const groups = known.map((it) => it.split('.').slice(0, depth).join('.'));
  return didYouMean(key, new Set([...groups, ...known]));
}
