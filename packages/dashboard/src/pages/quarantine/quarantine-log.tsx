import type { QuarantinedMessage } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { Badge, timeColumn } from '../../components/data.js';
import { Page } from '../../components/layout.js';
import { FilterBar, FilterSelect } from '../../components/log/filter-bar.js';
import { LiveLog } from '../../components/log/live-log.js';
import type { LogColumn } from '../../components/log/log.js';
import { bytes } from '../../format/number.js';
import { projectHref } from '../../router/location.js';
import { may } from '../../session/session.js';
import { SourceFilter, useSourceNames } from '../events/event-filter.js';
import { CODES, quarantineFilter, STATUSES } from './quarantine-filter.js';
import { reasonOf } from './reasons.js';
import { QuarantineBatches, replayNow } from './replay.js';

export default function QuarantineLog() {
  const [round, setRound] = useState(0);
  const sources = useSourceNames();
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
        name="quarantine"
        columns={columnsOf(new Map(sources.map(([uid, name]) => [uid, name])))}
        load={(page, signal) =>
          api()
            .quarantine.list({ ...quarantineFilter(), ...page }, { signal })
            .page()
        }
        hrefOf={({ uid }) => projectHref(`/quarantine/${uid}`)}
        {...(may('member') && {
          rowKey: { key: 'r', label: 'Replay the selected message', run: replayNow },
        })}
      >
        <p>
          Messages that cannot be accepted are kept here, with the reason, until you replay or
          discard them.
        </p>
        <p>
          <a href={projectHref('/quarantine?status=any')}>View replayed and discarded messages</a>
        </p>
      </LiveLog>
    </Page>
  );
}

const columnsOf = (
  sources: ReadonlyMap<string, string>,
): readonly LogColumn<QuarantinedMessage>[] => [
  { name: 'Reason', width: 'minmax(9rem, 0.9fr)', cell: ({ code }) => reasonOf(code).label },
  { name: 'Status', width: '7rem', cell: ({ status }) => <Badge status={status} /> },
  {
    name: 'Details',
    width: 'minmax(8rem, 3fr)',
    narrow: 'second',
    cell: ({ reason }) => (
      <span class="muted" title={reason}>
        {reason}
      </span>
    ),
  },
  {
    name: 'Source',
    width: 'minmax(6rem, 0.9fr)',
    narrow: 'hidden',
    cell: ({ source_id: id, coordinates }) => (
      <span title={coordinates}>{sources.get(id) ?? coordinates}</span>
    ),
  },
  {
    name: 'Size',
    width: '4.5rem',
    isNumber: true,
    narrow: 'hidden',
    cell: ({ raw_bytes: size }) => bytes(size),
  },
  {
    ...timeColumn('Time', 'occurred_at', 'row'),
    width: '8.5rem',
    narrow: 'second',
    isOrder: true,
  },
];
