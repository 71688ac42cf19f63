import type { QuarantinedMessage, ReplayedMessage } from '@gateway/client';
import { api } from '../../api/index.js';
import { ActionButton, toast, toastError } from '../../components/index.js';
import { may } from '../../session/session.js';

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
