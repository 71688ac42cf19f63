import type { EventDelivery } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, given, type ListQuery } from '../../api/index.js';
import {
  Badge,
  BatchButton,
  ButtonLink,
  closedRange,
  FilterSelect,
  Link,
  ListPage,
  type LogColumn,
  messageTime,
  rangeWords,
  type Search,
  searchOf,
  shownRange,
  Time,
} from '../../components/index.js';
import { milliseconds, rowTime } from '../../format/time.js';
import { failureLabel } from '../../portal/attempts.js';
import { deliveryWords } from '../../portal/states.js';
import { isPortal, param } from '../../router/location.js';
import { maySend } from '../../session/session.js';
import { EndpointFilter } from '../subscriptions/endpoint-names.js';
import { BreakerNote, type HeldBack, resendNow } from './resend.js';

export default function DeliveryLog() {
  return (
    <ListPage<EventDelivery>
      title="Deliveries"
      actions={<ResendAll />}
      searchHint={isPortal.value ? 'ID prefix' : 'Event type or ID prefix'}
      filters={
        <>
          <FilterSelect name="status" label="Status" options={STATUSES} />
          <EndpointFilter />
        </>
      }
      note={<PayloadNote />}
      columns={columns}
      load={(page, options) =>
        api().eventDeliveries.list({ ...deliveryFilter(), ...page }, options)
      }
      rowKey={{ label: 'Resend the selected delivery', run: resendNow }}
    >
      {isPortal.value ? (
        <p>Each message to one of your endpoints appears here, with the response of your server.</p>
      ) : (
        <>
          <p>
            Each event creates a delivery for every matching endpoint. Deliveries appear here as
            they happen.
          </p>
          <ButtonLink to="/events">View events</ButtonLink>
        </>
      )}
    </ListPage>
  );
}

/** Events can be searched for data; their pages list their deliveries. */
function PayloadNote() {
  const search = param('search');
  if (isPortal.value || !/^(data|headers)\.|[=<>]/.test(search)) return null;
  return (
    <p role="status">
      Deliveries are not searched by their data.{' '}
      <Link to={`/events?search=${encodeURIComponent(search)}`}>Search the events</Link>
    </p>
  );
}

function Remark({ row }: { row: EventDelivery }) {
  if (isPortal.value) return <OwnerRemark row={row} />;
  const { reason, next_attempt_at: next, waits_for: wait } = row;
  if (wait === 'paused') return <>endpoint paused</>;
  if (wait === 'order') return <>in order</>;
  if (wait === 'breaker') return <>breaker open{next && `, ${rowTime(next).slice(0, -3)}`}</>;
  if (next && wait === 'retry') {
    return (
      <>
        next try <Time at={next} look="relative" />
      </>
    );
  }
  if (reason?.startsWith('No retry is left')) return <>no retry left</>;
  return <>{reason}</>;
}

function OwnerRemark({ row }: { row: EventDelivery }) {
  const { remark } = deliveryWords(row);
  return (
    <>
      {remark}
      {remark && row.next_attempt_at && (
        <>
          , <Time at={row.next_attempt_at} look="relative" />
        </>
      )}
    </>
  );
}

const columns: readonly LogColumn<EventDelivery>[] = [
  {
    name: 'Event type',
    width: 'minmax(9rem, 1.6fr)',
    cell: ({ event_metadata: event }) => event.event_type ?? 'unknown',
  },
  { name: 'Status', width: '6.5rem', cell: ({ status }) => <Badge status={status} /> },
  {
    name: 'Endpoint',
    width: 'minmax(8rem, 1.3fr)',
    narrow: 'second',
    cell: ({ endpoint_metadata: it }) => it.name ?? it.uid,
  },
  {
    name: 'Response',
    width: 'minmax(4rem, 0.6fr)',
    narrow: 'hidden',
    cell: ({ last_attempt: last }) =>
      last &&
      (isPortal.value
        ? failureLabel(last.error_class, last.http_status)
        : (last.http_status ?? (last.error_class ?? 'none').replaceAll('_', ' '))),
  },
  {
    name: 'Duration',
    width: '4.5rem',
    isNumber: true,
    narrow: 'hidden',
    cell: ({ last_attempt: last }) => last && milliseconds(last.duration_ms),
  },
  {
    name: 'Attempts',
    width: '4.5rem',
    isNumber: true,
    narrow: 'hidden',
    cell: ({ attempts }) => attempts,
  },
  {
    name: 'Remark',
    width: 'minmax(8rem, 1.6fr)',
    narrow: 'hidden',
    cell: (row) => (
      <span
        class="muted"
        title={isPortal.value ? deliveryWords(row).sentence : (row.reason ?? undefined)}
      >
        <Remark row={row} />
      </span>
    ),
  },
  messageTime,
];

type DeliveryQuery = ListQuery<'eventDeliveries'>;
type Status = NonNullable<DeliveryQuery['status']>[number];

const STATUSES = [
  ['', 'Any status'],
  ['failure', 'failure'],
  ['retry', 'retry'],
  // Deliveries that agents hold are scheduled again when these end.
  ['waiting', 'scheduled, processing'],
  ['success', 'success'],
  ['discarded', 'discarded'],
] as const;

function deliveryFilter(): DeliveryQuery & Search {
  const status = param('status');
  const statuses: readonly Status[] | undefined =
    status === 'waiting' ? ['scheduled', 'processing'] : status ? [status as Status] : undefined;
  return {
    ...shownRange(),
    ...searched(param('search')),
    ...given({ status: statuses, endpointId: param('endpoint') }),
  };
}

/**
 * The portal cannot list by event type, so it sends any text as an id, and the API reports the
 * error.
 */
function searched(text: string): Search {
  return isPortal.value && text !== '' ? { query: text.trim() } : searchOf(text);
}

const SENDABLE = {
  failure: 'failed deliveries',
  discarded: 'discarded deliveries',
  success: 'successful deliveries',
  retry: 'deliveries waiting for a retry',
  waiting: 'deliveries waiting for their first attempt',
};

function ResendAll() {
  const chosen = param('status');
  const status = (chosen || 'failure') as keyof typeof SENDABLE;
  const isWaiting = status === 'retry' || status === 'waiting';
  const { endpointId, event_type: eventType, query: idStart } = deliveryFilter();
  const [behind, setBehind] = useState<readonly HeldBack[]>([]);
  // A bulk resend cannot select by id prefix.
  if (!(status in SENDABLE) || idStart !== undefined || !maySend()) return null;
  return (
    <BatchButton
      label={isWaiting ? 'Retry now…' : 'Resend…'}
      title={isWaiting ? 'Retry deliveries now' : 'Resend deliveries'}
      words={{
        what: `${SENDABLE[status]}${eventType ? ` of ${eventType}` : ''}${endpointId ? ' to this endpoint' : ''}, ${rangeWords()}`,
        action: (count) => (isWaiting ? `Retry ${count} now` : `Resend ${count}`),
        done: (count) => `${count} queued`,
        held: 'of them wait until their paused endpoint is activated.',
        left: isWaiting
          ? 'more are skipped: they are already due, or their endpoint is not active.'
          : 'more are skipped: their endpoint is inactive or deleted.',
      }}
      begin={() => {
        const selection = {
          status: status === 'waiting' ? ('scheduled' as const) : status,
          ...closedRange(),
          ...given({ endpointId, event_type: eventType }),
        };
        const found = new Map<string, HeldBack>();
        return async (step, options) => {
          const {
            behind_breakers: breakers,
            due,
            held,
            left,
            next,
          } = await api().eventDeliveries.batchRetry({ ...selection, ...step }, options);
          for (const it of breakers) found.set(it.endpoint_id, it);
          setBehind([...found.values()]);
          return { count: due + held, held, left, next };
        };
      }}
      note={<BreakerNote behind={behind} />}
    />
  );
}
