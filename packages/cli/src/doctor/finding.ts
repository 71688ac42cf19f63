import { paint } from '../output/paint.js';
import { escapeLine } from '../output/escape-terminal.js';

/** How a part stands. `skipped`: nothing was looked at, because of what the sentence says. */
export type State = 'ok' | 'warning' | 'failed' | 'skipped';

/** What one check found. */
export interface Finding {
  readonly check: string;
  readonly state: State;
  readonly sentence: string;
  /** What to do about it. */
  readonly fix?: string;
}

export function ok(check: string, sentence: string): Finding {
  return { check, state: 'ok', sentence };
}

export function skipped(check: string, sentence: string): Finding {
  return { check, state: 'skipped', sentence };
}

export function warning(check: string, sentence: string, fix: string): Finding {
  return { check, state: 'warning', sentence, fix };
}

export function failed(check: string, sentence: string, fix: string): Finding {
  return { check, state: 'failed', sentence, fix };
}

/** A failure by the error that it threw, with the remedy that errors of the gateway and of plugins carry. */
export function failedBy(check: string, error: unknown, otherwise = 'this is not foreseen: report it with its sentence'): Finding {
  const { message = String(error), fix } = (error ?? {}) as { message?: string; fix?: string };
  return failed(check, message, fix ?? otherwise);
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
