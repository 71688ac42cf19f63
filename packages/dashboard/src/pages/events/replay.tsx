import type { Event } from '@gateway/client';
import { api, given } from '../../api/client.js';
import { toast, toastError } from '../../components/feedback.js';
import { ActionButton } from '../../components/form.js';
import { BatchButton } from '../../components/log/batch-dialog.js';
import { closedRange, rangeWords } from '../../components/log/time-range.js';
import { may } from '../../session/session.js';
import { eventFilter } from './event-filter.js';

/** Without confirmation. Endpoints that already have a delivery of the event do not get another. */
export function routeNow({ uid, event_type: type }: Event): void {
  api()
    .events.replay(uid)
    .then(() => toast(`Replaying ${type}.`), toastError);
}

export function ReplayButton({ id, onDone }: { id: string; onDone: () => void }) {
  if (!may('member')) return null;
  return (
    <ActionButton
      keys="r"
      work={async () => {
        await api().events.replay(id);
        toast('Event replayed. Endpoints without a delivery of it get one.');
        onDone();
      }}
    >
      Replay
    </ActionButton>
  );
}

/** All events that match the log's filters. */
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
      label="Replay…"
      title="Replay events"
      words={{
        what: `${words}${search ? ` matching ${search}` : ''}, ${rangeWords()}`,
        action: (count) => `Replay ${count}`,
        done: (count) => `Replayed ${count}`,
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
