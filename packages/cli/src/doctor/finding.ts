import type { Config, Resolved } from '@gateway/core/config';
import type { Discovery } from '@gateway/core/plugins';
import type { Database, DatabaseFacts } from '@gateway/store/postgres';
import type { CheckedConfig } from '../config/check.js';
import { escapeLine } from '../output/escape-terminal.js';
import { paint } from '../output/paint.js';

/** `skipped` means that nothing was checked, for the reason in the sentence. */
type DoctorState = 'ok' | 'warning' | 'failed' | 'skipped';

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
  /** The facts about Postgres. Rejects if it is unreachable. */
  readonly reached: Promise<DatabaseFacts>;
  /** The migrated database. Rejects if Postgres is unreachable or lacks migrations. */
  readonly migrated: Promise<Database>;
}

/**
 * A check's name and function, which returns a result or further checks, such as one per source. A
 * thrown error is reported as a failure.
 */
export type DoctorCheck = readonly [
  name: string,
  run: (
    context: DoctorContext,
  ) => DoctorResult | readonly DoctorCheck[] | Promise<DoctorResult | readonly DoctorCheck[]>,
];

export const ok = (sentence: string): DoctorResult => ({ state: 'ok', sentence });
export const skipped = (sentence: string): DoctorResult => ({ state: 'skipped', sentence });
export const warning = (sentence: string, fix: string): DoctorResult => ({
  state: 'warning',
  sentence,
  fix,
});
export const failed = (sentence: string, fix: string): DoctorResult => ({
  state: 'failed',
  sentence,
  fix,
});

/** Returns a failure with the message and fix of an error, or with `otherwise` if it has no fix. */
export function failedBy(
  error: unknown,
  otherwise = 'this is not foreseen: report it with its sentence',
): DoctorResult {
  const { message = String(error), fix } = (error ?? {}) as { message?: string; fix?: string };
  return failed(message, fix ?? otherwise);
}

const STYLES: Readonly<Record<DoctorState, Parameters<typeof paint>[0]>> = {
  ok: 'green',
  warning: 'yellow',
  failed: 'red',
  skipped: 'gray',
};
const STATE_CHARS = 9;
const CHECK_CHARS = 20;

/**
 * Formats a finding, with the fix on a second line. The text is escaped, because it can come from
 * servers and plugins.
 */
export function findingLines({ check, state, sentence, fix }: DoctorFinding): string {
  const line = `${paint(STYLES[state], state.padEnd(STATE_CHARS))}${escapeLine(check).padEnd(CHECK_CHARS - 1)} ${escapeLine(sentence)}`;
  return fix === undefined
    ? line
    : `${line}\n${' '.repeat(STATE_CHARS + CHECK_CHARS)}fix: ${escapeLine(fix)}`;
}

/** Returns the number of findings per state on one line. */
export function findingsSummary(findings: readonly DoctorFinding[]): string {
  const counts = (Object.keys(STYLES) as DoctorState[]).map(
    (state) => [state, findings.filter((it) => it.state === state).length] as const,
  );
  return counts.flatMap(([state, count]) => (count > 0 ? [`${count} ${state}`] : [])).join(', ');
}
