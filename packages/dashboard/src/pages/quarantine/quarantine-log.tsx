import type { QuarantinedMessage } from '@gateway/client';
import { api } from '../../api/index.js';
import {
  Badge,
  FilterSelect,
  Link,
  ListPage,
  type LogColumn,
  messageTime,
  Muted,
} from '../../components/index.js';
import { bytes } from '../../format/number.js';
import { may } from '../../session/session.js';
import { SourceFilter, useSourceNames } from '../events/event-filter.js';
import { CODES, quarantineFilter, STATUSES } from './quarantine-filter.js';
import { reasonOf } from './reasons.js';
import { QuarantineBatches, replayNow } from './replay.js';

export default function QuarantineLog() {
  const sources = new Map(useSourceNames().map(([uid, name]) => [uid, name]));
  return (
    <ListPage<QuarantinedMessage>
      title="Quarantine"
      label="Quarantined messages"
      actions={<QuarantineBatches />}
      filters={
        <>
          <FilterSelect name="status" label="Status" options={STATUSES} />
          <FilterSelect name="code" label="Reason" options={CODES} />
          <SourceFilter />
        </>
      }
      columns={columnsOf(sources)}
      load={(page, options) => api().quarantine.list({ ...quarantineFilter(), ...page }, options)}
      rowKey={may('member') && { label: 'Replay the selected message', run: replayNow }}
    >
      <p>
        Messages that cannot be accepted are kept here, with the reason, until you replay or discard
        them.
      </p>
      <p>
        <Link to="/quarantine?status=any">View replayed and discarded messages</Link>
      </p>
    </ListPage>
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
    cell: ({ reason }) => <Muted text={reason} />,
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
  messageTime,
];
