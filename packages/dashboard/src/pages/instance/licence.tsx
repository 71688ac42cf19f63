import type { InstanceLicense } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import { Facts } from '../../components/data/facts.js';
import { FullTime } from '../../components/data/time.js';
import { Panel } from '../../components/layout/panel.js';
import { capital } from '../../format/sentence.js';

const FEW_DAYS = 30;

/**
 * The licence in force: holder, validity and entitlements; or why a given licence is not in force.
 */
export function LicencePanel({ licence }: { readonly licence: InstanceLicense }) {
  const {
    kind,
    organisation,
    entitlements,
    unknown_entitlements: unknown,
    issued_at: issued,
    expires_at: expires,
    days_left: days,
  } = licence;
  const isEnding = days !== null && days <= FEW_DAYS;
  return (
    <Panel
      title="Licence"
      actions={
        <Badge
          status={kind}
          tone={licence.problem ? 'bad' : isEnding ? 'warn' : kind === 'licensed' ? 'ok' : 'plain'}
        />
      }
    >
      {licence.problem && (
        <div class="problem">
          <p class="problem-sentence">{capital(licence.problem.sentence)}</p>
          <p>{capital(licence.problem.fix)}</p>
        </div>
      )}
      <Facts
        rows={[
          ['Issued to', organisation],
          [
            'Allows',
            entitlements.length > 0 ? entitlements.join(', ') : 'everything that needs no licence',
          ],
          [
            'Without effect',
            unknown.length > 0 ? `${unknown.join(', ')}: no installed plugin declares it` : null,
          ],
          ['Issued', issued && <FullTime at={issued} />],
          ['Expires', expires && <FullTime at={expires} />],
        ]}
      />
    </Panel>
  );
}
