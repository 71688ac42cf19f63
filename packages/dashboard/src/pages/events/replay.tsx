import type { Event } from '@gateway/client';
import { api, given } from '../../api/client.js';
import { toast, toastError } from '../../components/feedback.js';
import { ActionButton } from '../../components/form.js';
import { BatchButton } from '../../components/log/batch-dialog.js';
import { closedRange, rangeWords } from '../../components/log/time-range.js';
import { may } from '../../session/session.js';
import { eventFilter } from './event-filter.js';

/**
 * Reroutes an event without confirmation. Endpoints that already have a delivery of the event do
 * not get another.
 */
export function routeNow({ uid, event_type: type }: Event): void {
  api()
    .events.replay(uid)
    .then(() => toast(`${type} is routed again.`), toastError);
}

export function ReplayButton({ id, onDone }: { id: string; onDone: () => void }) {
  if (!may('member')) return null;
  return (
    <ActionButton
      keys="r"
      work={async () => {
        await api().events.replay(id);
        toast('The event is routed again: endpoints that have no delivery of it get one.');
        onDone();
      }}
    >
      Route again
    </ActionButton>
  );
}

/** A button that reroutes all events matching the log's filters. */
export function ReplayAll({ onDone }: { onDone: () => void }) {
  const { query: idStart, search, sourceId, status, outcome } = eventFilter();
  if (idStart !== undefined || status === 'pending' || !may('member')) return null;
  const words = {
    processed: 'processed events',
    failed: 'failed events',
    any: outcome ? 'events without a recipient' : 'events',
  }[status ?? 'any'];
  return (
    <BatchButton
      label="Route again…"
      title="Route events again"
      words={{
        what: `${words}${search ? ` found by ${search}` : ''}, ${rangeWords()}`,
        action: (count) => `Route ${count} again`,
        done: (count) => `${count} were routed again`,
      }}
      begin={() => {
        const selection = {
          ...closedRange(),
          ...given({ search, sourceId, status, outcome }),
        };
        return (options, signal) =>
          api().events.batchReplay({ ...selection, ...options }, { signal });
      }}
      onDone={onDone}
    />
  );
}
