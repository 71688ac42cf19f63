import type { QuarantinedMessage, ReplayedMessage } from '@gateway/client';
import { api, given } from '../../api/client.js';
import { toast, toastError } from '../../components/feedback.js';
import { ActionButton } from '../../components/form.js';
import { BatchButton } from '../../components/log/batch-dialog.js';
import { closedRange, rangeWords } from '../../components/log/time-range.js';
import { may } from '../../session/session.js';
import { quarantineFilter } from './quarantine-filter.js';
import { reasonOf } from './reasons.js';

/** Shows the outcome of a replay in a toast. */
export function tell({ outcome, event_ids: ids, reason }: ReplayedMessage): void {
  switch (outcome) {
    case 'refused':
      return toast(`It stays in quarantine. ${reason ?? ''}`, 'bad');
    case 'dropped':
      return toast('The function of its source dropped it.');
    case 'duplicate':
      return toast('It is replayed: its events were there already.');
    default:
      return toast(
        `It is replayed: ${ids.length === 1 ? 'its event is' : `its ${ids.length} events are`} on the way.`,
      );
  }
}

/** Replays a listed message without confirmation. */
export function replayNow({ uid, status }: QuarantinedMessage): void {
  if (status !== 'quarantined') return toast(`It is ${status} already.`, 'bad');
  api().quarantine.replay(uid).then(tell, toastError);
}

export function MessageActions({ id, onDone }: { id: string; onDone: () => void }) {
  if (!may('member')) return null;
  return (
    <>
      <ActionButton
        work={async () => {
          await api().quarantine.discard(id);
          toast('The message is discarded. It is kept for a while, and not replayed.');
          onDone();
        }}
      >
        Discard
      </ActionButton>
      <ActionButton
        keys="r"
        work={async () => {
          tell(await api().quarantine.replay(id));
          onDone();
        }}
      >
        Replay
      </ActionButton>
    </>
  );
}

/** Buttons that discard or replay all quarantined messages matching the log's filters. */
export function QuarantineBatches({ onDone }: { onDone: () => void }) {
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
          return (options, signal) =>
            api().quarantine.batchDiscard({ ...selection, ...options }, { signal });
        }}
        onDone={onDone}
      />
      <BatchButton
        label="Replay…"
        title="Replay quarantined messages"
        words={{
          what: `${what}, can be replayed now`,
          counting: what,
          action: (count) => `Replay ${count}`,
          done: (count) => `Replayed ${count}`,
          held: 'of them are dropped by the function of their source.',
          left: 'more would be refused again, and stay.',
        }}
        begin={() => {
          const selection = selected();
          return async (options, signal) => {
            const { replayed, duplicates, dropped, refused, next } =
              await api().quarantine.batchReplay({ ...selection, ...options }, { signal });
            return { count: replayed + duplicates + dropped, held: dropped, left: refused, next };
          };
        }}
        onDone={onDone}
      />
    </>
  );
}
