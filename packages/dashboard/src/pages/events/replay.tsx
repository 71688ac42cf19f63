import type { Event } from '@gateway/client';
import { api, given } from '../../api/index.js';
import {
  ActionButton,
  BatchButton,
  closedRange,
  rangeWords,
  toast,
  toastError,
} from '../../components/index.js';
import { may } from '../../session/session.js';
import { eventFilter } from './event-filter.js';

/** Without confirmation. Endpoints that already have a delivery of the event do not get another. */
export function routeNow({ uid, event_type: type }: Event): void {
  api()
    .events.replay(uid)
    .then(() => toast(`Replaying ${type}.`), toastError);
}

export function ReplayButton({ id }: { id: string }) {
  if (!may('member')) return null;
  return (
    <ActionButton
      keys="r"
      work={() => api().events.replay(id)}
      told="Event replayed. Endpoints without a delivery of it get one."
    >
      Replay
    </ActionButton>
  );
}

export function ReplayAll() {
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
        return (step, options) => api().events.batchReplay({ ...selection, ...step }, options);
      }}
    />
  );
}
