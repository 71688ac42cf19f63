import { GatewayError } from '@gateway/core/errors';
import { findEndpoint } from '@gateway/store/config';
import { findEventDelivery, notifyDue, resendEventDelivery } from '@gateway/store/deliveries';
import {
  DEPTH_MAX,
  discardKey,
  findKey,
  listParkedKeys,
  skipDelivery,
  type KeyRow,
} from '@gateway/store/ordering';
import {
  found,
  Id,
  int,
  namedObject,
  nullable,
  object,
  projectItem,
  projectRoute,
  string,
  Timestamp,
  Type,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';

const row = {
  uid: { ...Id, description: 'A digest of the key.' },
  endpoint_id: Id,
  value: nullable(string('Up to 200 characters of the key; null after the delivery was resent.')),
  event_delivery_id: { ...Id, description: 'The delivery whose turn it is.' },
  event_id: nullable(string('Its event; null if retention has deleted the delivery.')),
  since: { ...Timestamp, description: 'Start of the turn of this delivery.' },
  parked_at: nullable(Timestamp, 'When the key was parked; null while deliveries are sent.'),
  reason: nullable(string('Why the delivery failed, or what it waits for.')),
  depth: int(`Unfinished deliveries of the key, at most ${DEPTH_MAX.toLocaleString('en')}.`),
};
const OrderedKey = namedObject('OrderedKey', row);
const OrderedKeys = namedObject('OrderedKeys', { content: Type.Array(object(row)) });

const item = { thing: 'ordered key', data: OrderedKey } as const;

const view = ({ order_key, key, ...rest }: KeyRow) => ({ uid: order_key, value: key, ...rest });

const keyOf = ({ project, params }: ProjectCall) => ({
  projectId: project.id,
  endpointId: params['endpoint_id']!,
  orderKey: params['id']!,
});

export const orderedKeyRoutes: readonly Route[] = [
  projectRoute(
    'GET /endpoints/:id/ordered-keys',
    'Lists the parked keys of an ordered endpoint, the oldest first, at most 1,000.',
    { data: OrderedKeys, name: 'listParkedKeys' },
    async ({ database, read, project, id }) => {
      found(await findEndpoint(database.knex, project.id, id), 'endpoint', id);
      const rows = await read(({ data }) => listParkedKeys(data, project.id, [id]));
      return { message: 'parked keys', data: { content: rows.map(view) } };
    },
  ),
  projectItem(
    'GET /endpoints/:endpoint_id/ordered-keys/:id',
    'Shows a key that has unfinished deliveries.',
    { ...item, name: 'getKey' },
    find,
    view,
  ),
  projectItem(
    'PUT /endpoints/:endpoint_id/ordered-keys/:id/release',
    'Sends the failed delivery of a parked key again. The others follow when it succeeds.',
    { ...item, message: 'key released', name: 'releaseKey' },
    async (call) => {
      const key = await find(call);
      if (key.parked_at === null) throw notParked();
      const delivery = await findEventDelivery(call.planes, call.project.id, key.event_delivery_id);
      if (delivery) await resendEventDelivery(call.planes, delivery, ['failure', 'discarded']);
      else await skip(call);
      return (await now(call)) ?? { ...key, parked_at: null };
    },
    view,
  ),
  projectItem(
    'PUT /endpoints/:endpoint_id/ordered-keys/:id/skip',
    'Gives up the delivery whose turn it is, and goes on with the next one of the key.',
    { ...item, message: 'delivery skipped', name: 'skipDelivery' },
    async (call) => {
      const key = await find(call);
      await skip(call);
      return (await now(call)) ?? { ...key, parked_at: null, depth: 0 };
    },
    view,
  ),
  projectItem(
    'PUT /endpoints/:endpoint_id/ordered-keys/:id/discard',
    'Discards all unfinished deliveries of a key, except one that is being sent.',
    { ...item, message: 'deliveries of the key discarded', name: 'discardKey' },
    async (call) => {
      const key = await find(call);
      const { due } = await discardKey(call.planes.data, keyOf(call), byWhom('discarded'));
      if (due.length > 0) await notifyDue(call.planes.control, [call.project.id]);
      return (await now(call)) ?? { ...key, parked_at: null, depth: 0 };
    },
    view,
  ),
];

function now(call: ProjectCall): Promise<KeyRow | undefined> {
  return findKey(call.planes.data, keyOf(call));
}

async function find(call: ProjectCall): Promise<KeyRow> {
  const { database, project, params, id } = call;
  const endpointId = params['endpoint_id']!;
  found(await findEndpoint(database.knex, project.id, endpointId), 'endpoint', endpointId);
  return found(await now(call), 'ordered key', id);
}

async function skip(call: ProjectCall): Promise<void> {
  const { planes, project } = call;
  const due = await skipDelivery(planes.data, keyOf(call), byWhom('skipped'));
  if (!due)
    throw new GatewayError('conflict', {
      sentence: 'an agent is sending the delivery',
      fix: 'wait for the attempt',
    });
  if (due.length > 0) await notifyDue(planes.control, [project.id]);
}

const byWhom = (what: 'skipped' | 'discarded') =>
  `It was ${what} over the API, so that its key goes on.`;

function notParked(): GatewayError {
  return new GatewayError('conflict', {
    sentence: 'the key is not parked: its deliveries are being sent',
    fix: 'skip the delivery to go on with the next one',
  });
}
