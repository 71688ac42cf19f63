import type { Config, Resolved } from '@gateway/core/config';
import type { Discovery } from '@gateway/core/plugins';
import type { Database, DatabaseFacts } from '@gateway/store/postgres';
import type { CheckedConfig } from '../config/check.js';
import { escapeLine } from '../output/escape-terminal.js';
import { paint } from '../output/paint.js';

/** How a part stands. `skipped`: nothing was looked at, because of what the sentence says. */
type State = 'ok' | 'warning' | 'failed' | 'skipped';

/** What a check found. */
export interface Result {
  readonly state: State;
  readonly sentence: string;
  /** What to do about it. */
  readonly fix?: string;
}

export interface Finding extends Result {
  readonly check: string;
}

export interface Examined {
  readonly checked: CheckedConfig;
  /** Undefined when the settings are wrong: nothing else can be checked then. */
  readonly resolved: Resolved | undefined;
  readonly discovery: Discovery;
  /** Address that a test mail is sent to. */
  readonly smtpTo: string | undefined;
}

/** What the checks work on. */
export interface Context extends Examined {
  readonly resolved: Resolved;
  readonly config: Config;
  readonly signal: AbortSignal;
  /** Rejects if Postgres cannot be reached. */
  readonly reached: Promise<DatabaseFacts>;
  /** Rejects if Postgres lacks migrations. */
  readonly migrated: Promise<Database>;
}

/** A check finds one result, or gives the checks that find it for each thing of a kind. An error is a failure. */
export type Check = readonly [name: string, run: (context: Context) => Result | readonly Check[] | Promise<Result | readonly Check[]>];

export const ok = (sentence: string): Result => ({ state: 'ok', sentence });
export const skipped = (sentence: string): Result => ({ state: 'skipped', sentence });
export const warning = (sentence: string, fix: string): Result => ({ state: 'warning', sentence, fix });
export const failed = (sentence: string, fix: string): Result => ({ state: 'failed', sentence, fix });

/** A failure by the error that it threw, with the remedy that errors of the gateway and of plugins carry. */
export function failedBy(error: unknown, otherwise = 'this is not foreseen: report it with its sentence'): Result {
  const { message = String(error), fix } = (error ?? {}) as { message?: string; fix?: string };
  return failed(message, fix ?? otherwise);
}

const STYLES: Readonly<Record<State, Parameters<typeof paint>[0]>> = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'gray' };
const STATE_CHARS = 9;
const CHECK_CHARS = 20;

/** A finding as a line for a person, with what to do on a second one. What servers and plugins say is made safe for a terminal. */
export function findingLines({ check, state, sentence, fix }: Finding): string {
  const line = `${paint(STYLES[state], state.padEnd(STATE_CHARS))}${escapeLine(check).padEnd(CHECK_CHARS - 1)} ${escapeLine(sentence)}`;
  return fix === undefined ? line : `${line}\n${' '.repeat(STATE_CHARS + CHECK_CHARS)}fix: ${escapeLine(fix)}`;
}

/** How many there are of each state. */
export function findingsSummary(findings: readonly Finding[]): string {
  const counts = (Object.keys(STYLES) as State[]).map((state) => [state, findings.filter((it) => it.state === state).length] as const);
  return counts.flatMap(([state, count]) => (count > 0 ? [`${count} ${state}`] : [])).join(', ');
}
