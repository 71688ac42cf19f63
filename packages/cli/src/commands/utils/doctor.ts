import type { FlagValues, Resolved } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import { wrongUse } from '../../app/flag-values.js';
import { GatewayCommand, jsonFlag, valueFlag } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';
import type { DoctorFinding } from '../../doctor/finding.js';

export default class UtilsDoctor extends GatewayCommand {
  static override description =
    'Checks settings, encryption key, licence, database, shards, migrations, clock, agents, KV, archive, plugins, the broker of each source, the health of each project, ' +
    'ports, the sandbox, open files, SMTP and proxy in parallel, for at most ten seconds, and gives a fix for each problem. ' +
    'Changes nothing, except that it writes doctor.txt to the archive. Exits with 1 if a check fails; what is wrong in a project, such as a failing endpoint, is a warning.';
  static override examples = [
    'gateway utils doctor',
    'gateway utils doctor --config ./production.json --json',
    'gateway utils doctor --smtp-to ops@example.com',
  ];
  static override flags = {
    'smtp-to': valueFlag('<address>', 'Send a test email to this address.'),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsDoctor);
    const smtpTo = flags['smtp-to'];
    if (smtpTo !== undefined && !/^[^\s@]+@[^\s@]+$/.test(smtpTo))
      throw wrongUse(
        `--smtp-to must be an address, not ${JSON.stringify(smtpTo)}`,
        'use an address such as ops@example.com',
      );
    const [{ checkConfig }, { examine }, { findingLines, findingsSummary }] = await Promise.all([
      import('../../config/check.js'),
      import('../../doctor/examine.js'),
      import('../../doctor/finding.js'),
    ]);
    const discovery = installation();
    const checked = checkConfig(this.configOptions(flags), discovery);
    const findings: DoctorFinding[] = [];
    for await (const finding of examine({
      checked,
      resolved: this.resolvedOrNot(flags),
      discovery,
      smtpTo,
    })) {
      findings.push(finding);
      if (!flags.json) this.log(findingLines(finding));
    }
    if (flags.json) this.log(JSON.stringify(findings, null, 2));
    else this.logToStderr(findingsSummary(findings));
    if (findings.some(({ state }) => state === 'failed')) this.exit(1);
  }

  /** Undefined if the settings are invalid, which a finding reports. */
  private resolvedOrNot(flags: FlagValues): Resolved | undefined {
    try {
      return this.resolve(flags);
    } catch (error) {
      if (isGatewayError(error) && !isGatewayError(error, 'wrong_flags')) return undefined;
      throw error;
    }
  }
}
