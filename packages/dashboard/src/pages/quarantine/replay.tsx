import type { QuarantinedMessage, ReplayedMessage } from '@gateway/client';
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
import { quarantineFilter } from './quarantine-filter.js';
import { reasonOf } from './reasons.js';

export function tell({ outcome, event_ids: ids, reason }: ReplayedMessage): void {
  switch (outcome) {
    case 'refused':
      return toast(`The message stays in quarantine. ${reason ?? ''}`, 'bad');
    case 'dropped':
      return toast('The function of the source dropped the message.');
    case 'duplicate':
      return toast('Message replayed. Its events already existed.');
    default:
      return toast(
        `Message replayed as ${ids.length === 1 ? 'an event' : `${ids.length} events`}.`,
      );
  }
}

export function replayNow({ uid, status }: QuarantinedMessage): void {
  if (status !== 'quarantined') return toast(`This message is already ${status}.`, 'bad');
  api().quarantine.replay(uid).then(tell, toastError);
}

export function MessageActions({ id }: { id: string }) {
  if (!may('member')) return null;
  return (
    <>
      <ActionButton
        work={() => api().quarantine.discard(id)}
        told="Message discarded. It is deleted when its retention period ends."
      >
        Discard
      </ActionButton>
      <ActionButton keys="r" work={async () => tell(await api().quarantine.replay(id))}>
        Replay
      </ActionButton>
    </>
  );
}

export function QuarantineBatches() {
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
