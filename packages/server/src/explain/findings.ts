import {
  checkDependencies,
  checkEndpoints,
  checkSources,
  checkStates,
  type Checked,
  type HealthFacts,
} from './checks.js';
import { FINDINGS, type Finding, type FindingCode, type FindingRow } from './table.js';
import { clock, namesOf, things, upTo } from './wording.js';

/** Most harmful first. Runs the checks whose facts are known. */
export function findingsOf(facts: HealthFacts): Finding[] {
  const { now, project, components } = facts;
  const all: Checked = {
    ...checkDependencies(facts),
    ...(project && {
      ...checkStates(project, now),
      ...checkEndpoints(project, now),
      ...checkSources(project, components.kv?.state === 'ok'),
    }),
  };
  return (Object.keys(FINDINGS) as FindingCode[]).flatMap((code) => {
    const found = all[code];
    if (!found) return [];
    const [severity, page, , usual] = FINDINGS[code];
    const { since, count = 1, those = [], sentence } = found;
    const [only] = count === 1 ? those : [];
    const texts = {
      ...(only && { reason: only.reason }),
      ...found,
      names: namesOf(those, count),
      since: since ? ` since ${clock(since, now)}` : '',
    };
    const headline = filled(FINDINGS[code][2], count);
    const thing = /^\/(\w+)/.exec(page)![1]!;
    return {
      code,
      severity,
      count,
      since,
      sentence: filled(sentence || usual, count, { ...texts, headline }).trim(),
      page: only ? `/${thing}/${only.id}` : page,
      action: only ? `Open ${only.name}` : `Show ${thing}`,
    };
  });
}

/** The worst finding, and how many more there are. */
export function verdictOf([worst, ...others]: readonly [Finding, ...Finding[]]): string {
  const [, , headline]: FindingRow = FINDINGS[worst.code];
  const more = others.length === 0 ? '' : `, and ${things(others.length, 'more problem')}`;
  return `${filled(headline, worst.count)}${more}.`;
}

function filled(texts: string, count: number, values: Readonly<Record<string, unknown>> = {}) {
  const [one, several = one] = texts.split('|');
  const known: typeof values = { ...values, n: upTo(count) };
  const text = (count === 1 ? one : several)!;
  return text.replace(/\{(\w+)\}/g, (_, name: string) => (known[name] || '') as string);
}
