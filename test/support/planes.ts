import fs from 'node:fs';
import pg from 'pg';
import { DATA_TABLES } from '#store/postgres/planes';

/** The files that may send statements with tables of both planes, each with the reason. */
export const JOINING: Readonly<Record<string, string>> = {
  'packages/store/src/postgres/migrate.ts': 'Migrations up to 0052 change both planes.',
};

const schema = fs.readFileSync(new URL('../store/schema.txt', import.meta.url), 'utf8');
/** All tables. `migrate.test.ts` compares the file with the database. */
export const TABLES = [...new Set(schema.match(/^\w+(?=\.\w+ )/gm))];

/** A table after a keyword or, with an alias, after a comma. A partition counts as its table. */
const NAMED = new RegExp(
  String.raw`(?:\b(?:from|join|into|update|using|table)\s+(?:only\s+)?"?|,\s*(?=\w+\s+(?!as\b|from\b|asc\b|desc\b)[a-z]))(${TABLES.join('|')})(?:_\d{8}|_default)?\b`,
  'gi',
);
const NOT_NAMES = /--.*|\/\*[^]*?\*\/|'(?:[^']|'')*'/g;

/** Returns the tables of each plane that a statement names. */
export function planesOf(sql: string): Readonly<Record<'control' | 'data', string[]>> {
  const named = [...sql.replace(NOT_NAMES, '').matchAll(NAMED)].map(([, name]) =>
    name!.toLowerCase(),
  );
  const unique = [...new Set(named)].sort();
  return {
    control: unique.filter((name) => !DATA_TABLES.includes(name)),
    data: unique.filter((name) => DATA_TABLES.includes(name)),
  };
}

/**
 * Returns why a statement cannot run on a shard, or undefined if it can. A statement of a test, with
 * no file of a package on its stack, may join the planes.
 */
export function problemOf(sql: string, stack = stackHere): string | undefined {
  const { control, data } = planesOf(sql);
  if (control.length === 0 || data.length === 0) return undefined;
  const [place, file] = /(packages\/\w[\w-]*\/(?:src|dist)\/[\w/.-]+):\d+/.exec(stack()) ?? [];
  if (place === undefined || file! in JOINING) return undefined;
  return `${place} names tables of both planes in a statement: ${[...control, ...data].join(', ')}`;
}

const judged = new Set<string>();
const problems: string[] = [];

/**
 * Makes the process fail at its end if the code under test has sent a statement that names tables of
 * both planes. Checks each text once, where the pool or the connection gets it.
 */
export function watchStatements(): void {
  for (const prototype of [pg.Pool.prototype, pg.Client.prototype] as { query: Query }[]) {
    const { query } = prototype;
    prototype.query = function (...given) {
      const text = typeof given[0] === 'string' ? given[0] : (given[0] as { text?: string })?.text;
      if (text !== undefined && !judged.has(text)) {
        judged.add(text);
        const problem = problemOf(text);
        if (problem) problems.push(problem);
      }
      return query.apply(this, given);
    };
  }
  process.once('exit', () => {
    if (problems.length === 0) return;
    process.exitCode = 1;
    process.stderr.write(`${problems.join('\n')}\n`);
  });
}

type Query = (this: unknown, ...given: unknown[]) => unknown;

function stackHere(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 50;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return stack;
}
