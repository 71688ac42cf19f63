import type { OrderedKeys } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import {
  ActionButton,
  ConfirmButton,
  Link,
  Panel,
  Table,
  type TableColumns,
  Time,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { mayManage } from '../../session/session.js';

type Key = OrderedKeys['content'][number];

const LIVE_MS = 5_000;

/** Nothing while no key is parked. */
export function ParkedKeys({ endpointId }: { endpointId: string }) {
  const resource = useResource(
    `parked keys of ${endpointId}`,
    (options) => api().endpoints.listParkedKeys(endpointId, options),
    LIVE_MS,
  );
  const keys = resource.data?.content ?? [];
  if (keys.length === 0) return null;
  return (
    <Panel title="Parked keys">
      <p class="muted">
        The delivery of a parked key failed. The later deliveries of the key wait for it; other keys
        do not.
      </p>
      <Table label="Parked keys" rows={keys} columns={columns} />
    </Panel>
  );
}

const columns: TableColumns<Key> = {
  Key: (key) => <span class="mono">{nameOf(key)}</span>,
  Parked: ({ parked_at: at }) => at && <Time at={at} look="relative" />,
  Unfinished: ({ depth }) => count(depth),
  Reason: ({ reason, event_id: eventId }) => (
    <>
      {reason} {eventId && <Link to={`/events/${eventId}`}>Event</Link>}
    </>
  ),
  Actions: (key) => mayManage() && <KeyActions ordered={key} />,
};

function KeyActions({ ordered }: { ordered: Key }) {
  const { endpoint_id: endpointId, uid, depth } = ordered;
  const name = nameOf(ordered);
  return (
    <>
      <ActionButton
        label={`Release ${name}`}
        work={() => api().endpoints.releaseKey(endpointId, uid)}
        told="The failed delivery is sent again."
      >
        Release
      </ActionButton>
      <ConfirmButton
        verb="Skip"
        what={name}
        isRow
        work={() => api().endpoints.skipDelivery(endpointId, uid)}
        told="The next delivery of the key is sent."
      >
        <p>The failed delivery is given up. The endpoint does not get its event.</p>
      </ConfirmButton>
      <ConfirmButton
        verb="Discard"
        what={name}
        isRow
        work={() => api().endpoints.discardKey(endpointId, uid)}
        told="The deliveries of the key were discarded."
      >
        <p>The unfinished deliveries of the key ({count(depth)}) are given up.</p>
      </ConfirmButton>
    </>
  );
}

const nameOf = ({ value, uid }: Key) => value ?? uid;
