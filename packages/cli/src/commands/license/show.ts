import { licenceRecord } from '@gateway/core/plugins';
import { command, jsonFlag } from '../../app/gateway-command.js';
import { installation, licenceOf } from '../../app/installation.js';
import { recordText } from '../../output/table.js';

export default command({
  description:
    'Reads license_key and license_public_key as server and agent do, and needs no service. Exits with 1 if the token is not ' +
    'valid: the community licence then applies, and nothing stops.',
  examples: ['gateway license show', 'gateway license show --json --license-key <token>'],
  flags: jsonFlag,
  run({ config, exit, show }) {
    const licence = licenceOf(config());
    const record = licenceRecord(licence, installation().plugins);
    show(record, () => licenceText(record));
    if (licence.problem) exit(1);
  },
});

function licenceText(record: ReturnType<typeof licenceRecord>): string {
  const { unknown_entitlements: unknown, expires_at: expires, days_left: days } = record;
  const known = record.entitlements.filter((it) => !unknown.includes(it));
  const left = days === 0 ? 'less than a day' : days === 1 ? '1 day' : `${days} days`;
  return recordText([
    ['kind', record.kind],
    ['organisation', record.organisation],
    ['entitlements', known.join(', ') || 'none'],
    [
      'unknown',
      unknown.length > 0 && `${unknown.join(', ')} (no installed plugin declares it: no effect)`,
    ],
    ['issued', record.issued_at],
    ['expires', expires && `${expires}, in ${left}`],
    ['problem', record.problem?.sentence],
    ['fix', record.problem?.fix],
  ]);
}
