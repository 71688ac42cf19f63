import { paint } from '../output/paint.js';
import { escapeLine } from '../output/escape-terminal.js';
import type { Finding, State } from './finding.js';

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
