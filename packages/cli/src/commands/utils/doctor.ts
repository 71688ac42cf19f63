import type { Resolved } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import { command, jsonFlag, valueFlag, wrongUse } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';
import type { DoctorFinding } from '../../doctor/finding.js';

export default command({
  description:
    'Checks settings, encryption key, licence, database, shards, migrations, clock, agents, KV, archive, plugins, the broker of each source, the health of each project, ' +
    'the sandbox, open files, SMTP and proxy in parallel, for at most ten seconds, and gives a fix for each problem. ' +
    'Changes nothing, except that it writes doctor.txt to the archive. Exits with 1 if a check fails; what is wrong in a project, such as a failing endpoint, is a warning.',
  examples: [
    'gateway utils doctor',
    'gateway utils doctor --config ./production.json --json',
    'gateway utils doctor --smtp-to ops@example.com',
  ],
  flags: {
    'smtp-to': valueFlag('<address>', 'Send a test email to this address.'),
    ...jsonFlag,
  },
  async run({ flags, exit, json, log, note, options, resolve }) {
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
    const checked = checkConfig(options(), discovery);
    const findings: DoctorFinding[] = [];
    const given = { checked, resolved: validOf(resolve), discovery, smtpTo };
    for await (const finding of examine(given)) {
      findings.push(finding);
      if (!flags.json) log(findingLines(finding));
    }
    if (flags.json) json(findings);
    else note(findingsSummary(findings));
    if (findings.some(({ state }) => state === 'failed')) exit(1);
  },
});

/** Undefined if the settings are invalid, which a finding reports. */
function validOf(resolve: () => Resolved): Resolved | undefined {
  try {
    return resolve();
  } catch (error) {
    if (isGatewayError(error) && !isGatewayError(error, 'wrong_flags')) return undefined;
    throw error;
  }
}
