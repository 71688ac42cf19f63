import type { QuarantinedMessage, ReplayedMessage } from '@gateway/client';
import { api } from '../../api/client.js';
import { toast, toastError } from '../../components/feedback/toast.js';
import { ActionButton } from '../../components/form/action-button.js';
import { may } from '../../session/access.js';

/** Reports the outcome of a replay in a toast. */
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

/** Replays a message of a list without asking. */
export function replayNow({ uid, status }: QuarantinedMessage): void {
  if (status !== 'quarantined') return toast(`It is ${status} already.`, 'bad');
  api().quarantine.replay(uid).then(tell, toastError);
}

export function MessageActions({
  id,
  onDone,
}: {
  readonly id: string;
  readonly onDone: () => void;
}) {
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
