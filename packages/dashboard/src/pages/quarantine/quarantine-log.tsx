import type { QuarantinedMessage } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { Page } from '../../components/layout/page.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { SourceFilter } from '../events/source-filter.js';
import { FilterBar, FilterSelect } from '../log/filter-bar.js';
import { LiveLog } from '../log/live-log.js';
import { QuarantineBatches } from './batches.js';
import { columns } from './columns.js';
import { CODES, quarantineFilter, STATUSES } from './quarantine-filter.js';
import { replayNow } from './replay.js';

export default function QuarantineLog() {
  const [round, setRound] = useState(0);
  return (
    <Page
      title="Quarantine"
      isFull
      actions={<QuarantineBatches onDone={() => setRound(round + 1)} />}
    >
      <FilterBar>
        <FilterSelect name="status" label="Status" options={STATUSES} />
        <FilterSelect name="code" label="Reason" options={CODES} />
        <SourceFilter />
      </FilterBar>
      <LiveLog<QuarantinedMessage>
        key={round}
        label="Quarantined messages"
        name={`${projectId.value} quarantine`}
        columns={columns}
        load={(page, signal) =>
          api()
            .quarantine.list({ ...quarantineFilter(), ...page }, { signal })
            .page()
        }
        hrefOf={({ uid }) => projectHref(`/quarantine/${uid}`)}
        {...(may('member') && { rowKey: { key: 'r', label: 'Replay the row', run: replayNow } })}
      >
        <p>
          Messages that cannot be accepted are kept here with their bytes and the reason, until they
          are replayed or discarded.
        </p>
        <p>
          <a href={projectHref('/quarantine?status=any')}>Those that were replayed or discarded</a>
        </p>
      </LiveLog>
    </Page>
  );
}
