// @ts-check
// Generates the page of limits and the bounds in the threat model. Reads the values of constants
// from the modules that enforce them.
import fs from 'node:fs';
import path from 'node:path';
import { settings } from '#core/config/settings';
import { attacks } from './attacks.mjs';
import { effects, limits, mechanisms } from './limits.mjs';
import { code, MADE, table, withBlock } from './markdown.mjs';

/** @typedef {import('./limits.mjs').LimitRow} Limit */

const INTRODUCTION = `Whatever one tenant can make large has a limit of its own. Each limit is one of four mechanisms, and belongs to whoever it is counted for (its scope). Settings
are explained in [Configuration](configuration.md), and are followed by their default; limits without a setting are fixed. The [threat model](../internals/threat-model.md#bounds-of-memory-and-time) says
which attack each of them withstands.`;

/**
 * @param {string} root
 */
export function limitsPage(root) {
  return [
    '# Limits',
    MADE,
    INTRODUCTION,
    '## Mechanisms',
    table(['Mechanism', 'Meaning'], Object.entries(mechanisms)),
    '## Beyond a limit',
    table(['Effect', 'Meaning'], Object.entries(effects)),
    ...Object.entries(limits).flatMap(([title, rows]) => [
      `## ${title}`,
      table(
        ['Limit', 'Bounds', 'Scope', 'Mechanism', 'Beyond', 'Applied by'],
        rows.map((row) => [
          valueOf(row, root),
          'setting' in row ? settings[row.setting].summary : row.what,
          row.scope,
          row.mechanism,
          row.beyond.join(', '),
          `[${row.stage}](../../${stagePath(row.stage)})`,
        ]),
      ),
    ]),
  ]
    .join('\n\n')
    .concat('\n');
}

/**
 * Returns `threat-model.md` with its bounds replaced.
 * @param {string} root
 */
export function threatModelPage(root) {
  const all = Object.values(limits).flat();
  const rows = (/** @type {'memory' | 'time'} */ on) =>
    Object.entries(attacks).flatMap(([name, row]) => {
      if (row.on !== on) return [];
      const holding = all.filter(({ against = [] }) => against.some((it) => it === name));
      const also = 'also' in row ? [row.also] : [];
      const tests = row.tests.map((test) => `[${test}](../../test/${test}.test.ts)`);
      return [
        [
          row.attack,
          [...holding.map((limit) => holdsBy(limit, root)), ...also].join('; '),
          tests.join(', '),
        ],
      ];
    });
  const bounds = table(
    ['Attack', 'What holds', 'Test'],
    [['**Memory**', '', ''], ...rows('memory'), ['**Time**', '', ''], ...rows('time')],
  );
  return withBlock(
    fs.readFileSync(path.join(root, 'docs/internals/threat-model.md'), 'utf8'),
    'bounds',
    bounds,
  );
}

/**
 * Returns the source file of a stage, relative to the root.
 * @param {string} stage
 */
export function stagePath(stage) {
  const [name = '', ...rest] = stage.split('/');
  return `${/^(source|codec|tracer|metrics)-/.test(name) ? 'plugins' : 'packages'}/${name}/src/${rest.join('/')}.ts`;
}

/**
 * @param {Limit} limit
 * @param {string} root
 */
function holdsBy(limit, root) {
  if ('setting' in limit) return code(limit.setting);
  if ('field' in limit) return `${code(limit.field)} of the endpoint`;
  return `${limit.what} (${constantOf(limit.stage, limit.constant, root)})`;
}

/**
 * @param {Limit} limit
 * @param {string} root
 */
function valueOf(limit, root) {
  if ('field' in limit) return code(limit.field);
  if ('constant' in limit) return constantOf(limit.stage, limit.constant, root);
  const row = settings[limit.setting];
  return `${code(limit.setting)} (${Number('default' in row ? row.default : undefined).toLocaleString('en')})`;
}

/**
 * Reads the value of a stage's constant, with its unit. Throws if the stage does not declare it as
 * a number.
 * @param {string} stage
 * @param {string} name
 * @param {string} root
 */
function constantOf(stage, name, root) {
  const text = fs.readFileSync(path.join(root, stagePath(stage)), 'utf8');
  const [, declared = ''] =
    new RegExp(`^(?:export )?const ${name} = ([^;]+);`, 'm').exec(text) ?? [];
  const product = declared.replaceAll('_', '').replaceAll('MEGABYTE', '1024 * 1024');
  if (!/^[\d\s*/]+$/.test(product))
    throw new Error(`${stagePath(stage)} declares no number ${name}`);
  if (product.includes('/')) return product.replaceAll(' ', '');
  return withUnit(
    name,
    product.split('*').reduce((all, factor) => all * Number(factor), 1),
  );
}

/**
 * @param {string} name
 * @param {number} value
 */
function withUnit(name, value) {
  if (name.includes('BYTES'))
    return value >= 1024 * 1024 ? `${value / (1024 * 1024)} MiB` : `${value / 1024} KiB`;
  if (/_MS(_|$)/.test(name)) return value >= 1000 ? `${value / 1000} s` : `${value} ms`;
  const number = value.toLocaleString('en');
  return name.includes('CHARS') ? `${number} characters` : number;
}
