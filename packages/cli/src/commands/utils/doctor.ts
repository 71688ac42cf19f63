import * as Flags from '@oclif/core/flags';
import type { FlagValues, Resolved } from '@gateway/core/config';
import type { Finding } from '../../doctor/finding.js';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';
import { wrongUse } from '../../app/flag-values.js';

export default class UtilsDoctor extends GatewayCommand {
  static override description =
    'Looks at settings, encryption key, licence, database, migrations, clock, agents, KV, plugins, the broker of each source, ports, the sandbox, open files, ' +
    'SMTP and proxy, all at once and for at most ten seconds, and tells what to do about each problem. It changes nothing. Exits 1 when something failed.';
  static override examples = [
    '<%= config.bin %> utils doctor',
    '<%= config.bin %> utils doctor --config ./production.json --json',
    '<%= config.bin %> utils doctor --smtp-to ops@example.com',
  ];
  static override flags = {
    'smtp-to': Flags.string({ helpValue: '<address>', summary: 'Send a test mail to this address.' }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsDoctor);
    const smtpTo = addressOf(flags['smtp-to']);
    const [{ checkConfig }, { examine }, { findingLines, findingsSummary }] = await Promise.all([
      import('../../config/check.js'),
      import('../../doctor/examine.js'),
      import('../../doctor/finding.js'),
    ]);
    const discovery = installation();
    const checked = checkConfig(this.configOptions(flags), discovery);
    const findings: Finding[] = [];
    for await (const finding of examine({ checked, resolved: await this.resolvedOrNot(flags), discovery, smtpTo })) {
      findings.push(finding);
      if (flags['json'] !== true) this.log(findingLines(finding));
    }
    if (flags['json'] === true) this.log(JSON.stringify(findings, null, 2));
    else this.logToStderr(findingsSummary(findings));
    if (findings.some(({ state }) => state === 'failed')) this.exit(1);
  }

  /** The settings; undefined when they are wrong, which a finding tells. */
  private async resolvedOrNot(flags: FlagValues): Promise<Resolved | undefined> {
    try {
      return this.resolve(flags);
    } catch (error) {
      const { isAboutSettings } = await import('../../doctor/settings.js');
      if (isAboutSettings(error)) return undefined;
      throw error;
    }
  }
}

function addressOf(given: FlagValues[string]): string | undefined {
  if (typeof given !== 'string' || /^[^\s@]+@[^\s@]+$/.test(given)) return given as string | undefined;
  throw wrongUse(`--smtp-to must be an address, not ${JSON.stringify(given)}`, 'give one like ops@example.com');
}
