import type { QuarantinedMessage } from '@gateway/client';
import { api, given, type ListQuery } from '../../api/index.js';
import {
  Badge,
  BatchButton,
  closedRange,
  FilterSelect,
  Link,
  ListPage,
  type LogColumn,
  messageTime,
  Muted,
  rangeWords,
  shownRange,
} from '../../components/index.js';
import { bytes } from '../../format/number.js';
import { param } from '../../router/location.js';
import { may } from '../../session/session.js';
import { SourceFilter, useSourceNames } from '../sources/source-names.js';
import { reasonOf, REASONS } from './reasons.js';
import { replayNow } from './replay.js';

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

type QuarantineQuery = ListQuery<'quarantine'>;

/** The values of the `status` filter. By default, only messages that need a decision are listed. */
const STATUSES = [
  ['', 'quarantined'],
  ['replayed', 'replayed'],
  ['discarded', 'discarded'],
  ['any', 'Any status'],
] as const;

const CODES = [
  ['', 'Any reason'] as const,
  ...Object.entries(REASONS).map(([code, { label }]) => [code, label] as const),
];

function quarantineFilter(): QuarantineQuery {
  const status = param('status') || 'quarantined';
  return {
    ...shownRange(),
    ...(status === 'any' ? {} : { status: status as NonNullable<QuarantineQuery['status']> }),
    ...given({ code: param('code'), sourceId: param('source') }),
  };
}

function QuarantineBatches() {
  const { code, sourceId, status } = quarantineFilter();
  if (status !== 'quarantined' || !may('member')) return null;
  const selected = () => ({ ...closedRange(), ...given({ code, sourceId }) });
  const filters = [code && `“${reasonOf(code).label}”`, sourceId && 'of this source', rangeWords()];
  const what = `quarantined messages, ${filters.filter(Boolean).join(', ')}`;
  return (
    <>
      <BatchButton
        label="Discard…"
        title="Discard quarantined messages"
        words={{
          what,
          action: (count) => `Discard ${count}`,
          done: (count) => `Discarded ${count}`,
        }}
        begin={() => {
          const selection = selected();
          return (step, options) =>
            api().quarantine.batchDiscard({ ...selection, ...step }, options);
        }}
      />
      <BatchButton
        label="Replay…"
        title="Replay quarantined messages"
        words={{
          what: `${what}, can be replayed now`,
          counting: what,
          action: (count) => `Replay ${count}`,
          done: (count) => `Replayed ${count}`,
          held: 'of them will be dropped by the function of their source.',
          left: 'more would be rejected again and stay in quarantine.',
        }}
        begin={() => {
          const selection = selected();
          return async (step, options) => {
            const { replayed, duplicates, dropped, refused, next } =
              await api().quarantine.batchReplay({ ...selection, ...step }, options);
            return { count: replayed + duplicates + dropped, held: dropped, left: refused, next };
          };
        }}
      />
    </>
  );
}
