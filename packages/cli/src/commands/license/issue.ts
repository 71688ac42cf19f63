import * as Flags from '@oclif/core/flags';
import { COMMUNITY_ENTITLEMENTS, knownEntitlements, publicKeyText } from '@gateway/core/plugins';
import { didYouMean } from '@gateway/core/errors';
import { formatDuration, parseDuration, wrongUse } from '../../app/flag-values.js';
import { GatewayCommand, valueFlag } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

/** The latest expiry. Date formats with four-digit years cannot express a later one. */
const LAST_MS = Date.UTC(9999, 11, 31);
const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;

export default class LicenseIssue extends GatewayCommand {
  static override description =
    'Prints the token. With --generate-key, creates the key pair of a distribution instead: the private key is written to a new ' +
    'file, and the public key is printed for the setting license_public_key. Needs no service.';
  static override examples = [
    '<%= config.bin %> license issue --generate-key ./distribution.pem',
    '<%= config.bin %> license issue --key ./distribution.pem --organisation Acme --entitlement apm,otel --expires 365d',
    '<%= config.bin %> license issue --key ./distribution.pem --organisation Acme --entitlement apm --expires 2027-12-31',
  ];
  static override flags = {
    'generate-key': valueFlag(
      '<file>',
      'Write a new private key to this file and print the public key.',
    ),
    key: valueFlag('<file>', 'PEM file with the private key.'),
    organisation: valueFlag('<name>', 'Licensee.'),
    entitlement: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<name>',
      summary: 'Entitlements of the licence, separated by commas or repeated.',
    }),
    expires: valueFlag(
      '<date|duration>',
      'When the licence expires: 2027-12-31, 2027-12-31T12:00:00Z, or a duration such as 365d.',
    ),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(LicenseIssue);
    const {
      'generate-key': generate,
      key,
      organisation,
      entitlement: [entitlement] = [],
      expires,
    } = flags;
    const given = Object.entries({
      '--key': key,
      '--organisation': organisation,
      '--entitlement': entitlement,
      '--expires': expires,
    });
    const { generateLicenceKey, issueLicence } = await import('../../app/licence.js');
    if (generate !== undefined) {
      const others = given.flatMap(([name, value]) => (value === undefined ? [] : [name]));
      const fix = 'generate the key first, then issue licences with --key';
      if (others.length > 0)
        throw wrongUse(`--generate-key and ${others.join(', ')} cannot be combined`, fix);
      if (generate === '') throw wrongUse('--generate-key needs the name of a file', fix);
      const publicKey = generateLicenceKey(generate);
      this.logToStderr(
        `The private key is in ${generate}. Keep it secret and safe. Set license_public_key (GATEWAY_LICENSE_PUBLIC_KEY) to:`,
      );
      this.log(publicKeyText(publicKey));
      return;
    }
    const missing = given.flatMap(([name, value]) => (value ? [] : [name]));
    if (!key || !organisation || !expires || missing.length > 0)
      throw wrongUse(
        `gateway license issue needs ${missing.join(' and ')}`,
        'as in `gateway license issue --key ./distribution.pem --organisation Acme --entitlement apm --expires 365d`; --generate-key generates a key',
      );
    const names = flags.entitlement!.flatMap((text) => text.split(',')).map((name) => name.trim());
    const entitlements = [...new Set(names.filter((name) => name !== ''))];
    const expiresAt = expiryOf(expires);
    const known = knownEntitlements(installation().plugins);
    for (const name of entitlements.filter((it) => !known.includes(it))) {
      this.logToStderr(
        `warning: no installed plugin declares the entitlement ${name} (known: ${known.join(', ')})${didYouMean(name, known)}`,
      );
    }
    const lost = COMMUNITY_ENTITLEMENTS.filter((name) => !entitlements.includes(name));
    if (lost.length > 0)
      this.logToStderr(
        `warning: the licence does not include ${lost.join(', ')}, which the community licence includes`,
      );
    const request = {
      organisation: organisation.trim(),
      entitlements,
      issuedAt: new Date(),
      expiresAt,
    };
    const { token, publicKey } = issueLicence(key, request);
    this.logToStderr(
      `A licence of ${request.organisation} until ${expiresAt.toISOString()}, checked with license_public_key ${publicKeyText(publicKey)}:`,
    );
    this.log(token);
  }
}

function expiryOf(text: string, now = Date.now()): Date {
  const day = Date.parse(text.slice(0, 10));
  // `Date.parse` reads 30 February as 2 March, so the parsed day is compared with the text.
  const isDate =
    DATE.test(text) &&
    !Number.isNaN(day) &&
    text.startsWith(new Date(day).toISOString().slice(0, 10));
  const ms = isDate
    ? Date.parse(text)
    : /^\d{4}-/.test(text)
      ? NaN
      : now + parseDuration('--expires', text);
  const fix =
    'give a date such as 2027-12-31 (UTC), a time such as 2027-12-31T12:00:00Z, or a duration such as 365d';
  if (Number.isNaN(ms)) throw wrongUse(`--expires is not a date: ${JSON.stringify(text)}`, fix);
  if (ms <= now) throw wrongUse(`--expires ${text} was ${formatDuration(now - ms)} ago`, fix);
  if (ms > LAST_MS) throw wrongUse(`--expires ${text} is after the year 9999`, fix);
  return new Date(ms);
}
