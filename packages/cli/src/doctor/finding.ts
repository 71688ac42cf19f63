import type { Config, Resolved } from '@gateway/core/config';
import type { Discovery } from '@gateway/core/plugins';
import type { Fault } from '@gateway/ingest/dependencies';
import type { Database, DatabaseFacts } from '@gateway/store/postgres';
import type { Shards } from '@gateway/store/shards';
import type { CheckedConfig } from '../config/check.js';
import { escapeLine } from '../output/escape-terminal.js';
import { paint } from '../output/paint.js';
import { textTable } from '../output/table.js';

/**
 * `unknown`: the state cannot be read. `skipped`: nothing was checked, for the reason in the
 * sentence.
 */
type DoctorState = 'ok' | 'warning' | 'unknown' | 'failed' | 'skipped';

export interface DoctorResult {
  readonly state: DoctorState;
  readonly sentence: string;
  readonly fix?: string;
}

export interface DoctorFinding extends DoctorResult {
  readonly check: string;
}

export interface Examined {
  readonly checked: CheckedConfig;
  /** Undefined if the settings are invalid and nothing else can be checked. */
  readonly resolved: Resolved | undefined;
  readonly discovery: Discovery;
  /** The recipient of a test mail, if any. */
  readonly smtpTo: string | undefined;
}

export interface DoctorContext extends Examined {
  readonly resolved: Resolved;
  readonly config: Config;
  readonly signal: AbortSignal;
  /** Rejects if Postgres is unreachable. */
  readonly reached: Promise<DatabaseFacts>;
  /** Rejects if Postgres is unreachable or lacks migrations. */
  readonly migrated: Promise<Database>;
  /** Rejects as `migrated`, and without the encryption key. */
  readonly shards: Promise<Shards>;
}

/**
 * Returns a result or further checks, such as one per source. A thrown error is reported as a
 * failure.
 */
export type DoctorCheck = readonly [
  name: string,
  run: (
    context: DoctorContext,
  ) => DoctorResult | readonly DoctorCheck[] | Promise<DoctorResult | readonly DoctorCheck[]>,
];

const fine = (state: DoctorState) => (sentence: string) => ({ state, sentence });
const wrong = (state: DoctorState) => (sentence: string, fix: string) => ({ state, sentence, fix });
export const [ok, skipped] = [fine('ok'), fine('skipped')];
export const [warning, unknown, failed] = [wrong('warning'), wrong('unknown'), wrong('failed')];

/** The result for a dependency that `/healthz` would show as `degraded` or `down`. */
export const resultOf = ({ state, reason, fix = '' }: Fault): DoctorResult =>
  (state === 'down' ? failed : warning)(reason, fix);

/** With the error's message and fix, or with `otherwise` if it has no fix. */
export function failedBy(
  error: unknown,
  otherwise = 'this is unexpected: report it with this message',
): DoctorResult {
  const { message = String(error), fix } = (error ?? {}) as { message?: string; fix?: string };
  return failed(message, fix ?? otherwise);
}

const STYLES: Readonly<Record<DoctorState, Parameters<typeof paint>[0]>> = {
  ok: 'green',
  warning: 'yellow',
  unknown: 'yellow',
  failed: 'red',
  skipped: 'gray',
};
const STATE_CHARS = 9;
const CHECK_CHARS = 32;

/**
 * The fix is on a second line, wrapped to the width. The text is escaped, because it can come from
 * servers and plugins. A long name is cut, so that the columns stay aligned.
 */
export function findingLines(
  { check, state, sentence, fix }: DoctorFinding,
  width = process.stdout.columns ?? Infinity,
): string {
  const name = escapeLine(check, CHECK_CHARS - 2).padEnd(CHECK_CHARS - 2);
  const start = state.padEnd(STATE_CHARS - 2);
  const rows = [[start, name, escapeLine(sentence)]];
  if (fix !== undefined) rows.push(['', '', `fix: ${escapeLine(fix)}`]);
  const text = textTable(rows, width);
  return paint(STYLES[state], state) + text.slice(state.length);
}

/** The number of findings per state, on one line. */
export function findingsSummary(findings: readonly DoctorFinding[]): string {
  const counts = (Object.keys(STYLES) as DoctorState[]).map(
    (state) => [state, findings.filter((it) => it.state === state).length] as const,
  );
  return counts.flatMap(([state, count]) => (count > 0 ? [`${count} ${state}`] : [])).join(', ');
}
