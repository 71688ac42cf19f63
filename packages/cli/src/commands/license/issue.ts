import * as Flags from '@oclif/core/flags';
import { COMMUNITY_ENTITLEMENTS, knownEntitlements, publicKeyText } from '@gateway/core/plugins';
import { didYouMean } from '@gateway/core/errors';
import { GatewayCommand } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';
import { issueRequest } from '../../licence/request.js';

export default class LicenseIssue extends GatewayCommand {
  static override description =
    'Prints the token. --generate-key makes the key pair of a distribution first: the private key goes into a new file, the public one is printed and is ' +
    'what license_public_key is set to wherever the distribution runs. Needs no service.';
  static override examples = [
    '<%= config.bin %> license issue --generate-key ./distribution.pem',
    '<%= config.bin %> license issue --key ./distribution.pem --organisation Acme --entitlement apm,otel --expires 365d',
    '<%= config.bin %> license issue --key ./distribution.pem --organisation Acme --entitlement apm --expires 2027-12-31',
  ];
  static override flags = {
    'generate-key': Flags.string({ helpValue: '<file>', summary: 'Write a new private key to this file and print the public key.' }),
    key: Flags.string({ helpValue: '<file>', summary: 'PEM file with the private key.' }),
    organisation: Flags.string({ helpValue: '<name>', summary: 'Who the licence is for.' }),
    entitlement: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<name>',
      summary: 'What it entitles to, and to nothing else: several with commas, or repeated.',
    }),
    expires: Flags.string({
      helpValue: '<date|duration>',
      summary: 'When it ends: 2027-12-31, 2027-12-31T12:00:00Z, or after a duration such as 365d.',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(LicenseIssue);
    const request = issueRequest(flags);
    const { generateLicenceKey, issueLicence } = await import('../../licence/issue.js');
    if ('generate' in request) {
      const publicKey = generateLicenceKey(request.generate);
      this.logToStderr(
        `The private key is in ${request.generate}: keep it secret, and keep it. Set license_public_key (GATEWAY_LICENSE_PUBLIC_KEY) to:`,
      );
      this.log(publicKeyText(publicKey));
      return;
    }
    const known = knownEntitlements(installation().plugins);
    for (const name of request.entitlements.filter((it) => !known.includes(it))) {
      this.logToStderr(
        `warning: no installed plugin declares the entitlement ${name} (known: ${known.join(', ')})${didYouMean(name, known)}`,
      );
    }
    const lost = COMMUNITY_ENTITLEMENTS.filter((name) => !request.entitlements.includes(name));
    if (lost.length > 0) this.logToStderr(`warning: it leaves out ${lost.join(', ')}, which the community licence includes`);
    const { token, publicKey } = issueLicence(request.key, { ...request, issuedAt: new Date() });
    this.logToStderr(
      `A licence of ${request.organisation} until ${request.expiresAt.toISOString()}, checked with license_public_key ${publicKeyText(publicKey)}:`,
    );
    this.log(token);
  }
}
