import type { Licence } from '@gateway/core/plugins';
import { escapeLine } from '../output/escape-terminal.js';
import { textTable } from '../output/table.js';

const DAY_MS = 86_400_000;

/** A licence as `gateway license show --json` prints it. */
export interface LicenceRecord {
  readonly kind: Licence['kind'];
  readonly organisation: string | null;
  readonly entitlements: readonly string[];
  /** Those that no installed plugin declares: they have no effect here. */
  readonly unknown_entitlements: readonly string[];
  readonly issued_at: string | null;
  readonly expires_at: string | null;
  /** Days until it expires, rounded. */
  readonly days_left: number | null;
  /** Why the token that was given is not in force. */
  readonly problem: { readonly code: string; readonly sentence: string; readonly fix: string } | null;
}

/** @param unknown the `unknownEntitlements` of the licence */
export function licenceRecord(licence: Licence, unknown: readonly string[], now = Date.now()): LicenceRecord {
  const { kind, organisation = null, issuedAt, expiresAt, problem } = licence;
  return {
    kind,
    organisation,
    entitlements: [...licence.entitlements].sort(),
    unknown_entitlements: unknown,
    issued_at: issuedAt?.toISOString() ?? null,
    expires_at: expiresAt?.toISOString() ?? null,
    days_left: expiresAt ? Math.round((expiresAt.getTime() - now) / DAY_MS) : null,
    problem: problem ? { code: problem.code, sentence: problem.message, fix: problem.fix } : null,
  };
}

/** The same for a person. */
export function licenceText(record: LicenceRecord, width = process.stdout.columns): string {
  const {
    kind,
    organisation,
    entitlements,
    unknown_entitlements: unknown,
    issued_at: issued,
    expires_at: expires,
    days_left: days,
    problem,
  } = record;
  const known = entitlements.filter((it) => !unknown.includes(it));
  const rows: [string, string][] = [
    ['kind', kind],
    ['organisation', organisation === null ? '' : escapeLine(organisation)],
    ['entitlements', known.length > 0 ? known.join(', ') : 'none'],
    ['unknown', unknown.length > 0 ? `${unknown.map((it) => escapeLine(it)).join(', ')} (no installed plugin declares it: no effect)` : ''],
    ['issued', issued ?? ''],
    ['expires', expires === null ? '' : `${expires}, ${inDays(days ?? 0)}`],
    ['problem', problem?.sentence ?? ''],
    ['fix', problem?.fix ?? ''],
  ];
  return textTable(
    rows.filter(([, value]) => value !== ''),
    width,
  );
}

function inDays(days: number): string {
  if (days === 0) return 'in less than a day';
  return `in ${days} ${days === 1 ? 'day' : 'days'}`;
}
