import { formatDuration, parseDuration } from '../app/duration.js';
import { GatewayError } from '@gateway/core/errors';
import type { FlagValues } from '@gateway/core/config';
import { wrongUse } from '../app/flag-values.js';

/** What `gateway license issue` is asked for: a key pair, or a licence. */
export type IssueRequest =
  | { readonly generate: string }
  | {
      readonly key: string;
      readonly organisation: string;
      readonly entitlements: readonly string[];
      readonly expiresAt: Date;
    };

/** The last time that a date can be, of Postgres and of people. */
const LAST_MS = Date.UTC(9999, 11, 31);
const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** @throws GatewayError `wrong_use` */
export function issueRequest(flags: FlagValues, now = Date.now()): IssueRequest {
  const { key, organisation, expires } = flags;
  const generate = flags['generate-key'];
  const entitlement = [flags['entitlement'] ?? []].flat().map(String);
  const given = Object.entries({ '--key': key, '--organisation': organisation, '--entitlement': entitlement[0], '--expires': expires });
  if (typeof generate === 'string') {
    const others = given.flatMap(([name, value]) => (value === undefined ? [] : [name]));
    if (others.length === 0 && generate !== '') return { generate };
    throw wrongUse(
      others.length > 0 ? `--generate-key and ${others.join(', ')} exclude each other` : '--generate-key needs the name of a file',
      'make the key first, then issue licences with --key',
    );
  }
  const missing = given.flatMap(([name, value]) => (value === undefined || value === '' ? [name] : []));
  if (missing.length > 0) {
    throw wrongUse(
      `gateway license issue needs ${missing.join(' and ')}`,
      'as in `gateway license issue --key ./distribution.pem --organisation Acme --entitlement apm --expires 365d`; --generate-key makes a key',
    );
  }
  const names = entitlement.flatMap((text) => text.split(',')).map((name) => name.trim());
  return {
    key: String(key),
    organisation: String(organisation).trim(),
    entitlements: [...new Set(names.filter((name) => name !== ''))],
    expiresAt: expiryOf(String(expires), now),
  };
}

function expiryOf(text: string, now: number): Date {
  const ms =
    DATE.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text) : /^\d{4}-/.test(text) ? NaN : now + parseDuration('--expires', text);
  const wrong = (sentence: string) =>
    new GatewayError('wrong_use', {
      sentence,
      fix: 'give a date such as 2027-12-31 (UTC), a time such as 2027-12-31T12:00:00Z, or a duration such as 365d',
    });
  if (Number.isNaN(ms)) throw wrong(`--expires is no date: ${JSON.stringify(text)}`);
  if (ms <= now) throw wrong(`--expires ${text} was ${formatDuration(now - ms)} ago`);
  if (ms > LAST_MS) throw wrong(`--expires ${text} is after the year 9999`);
  return new Date(ms);
}

/** `Date.parse` takes the 30th of February for the 2nd of March. */
function isDay(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}
