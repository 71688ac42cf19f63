import type { ConflictCode } from '@gateway/core/errors';
import {
  findEventDelivery,
  resendEventDelivery,
  type EventDeliveryRow,
  type EventDeliveryStatus,
} from '@gateway/store/deliveries';
import {
  Id,
  int,
  namedObject,
  nullable,
  object,
  projectRoute,
  string,
  Type,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';
import { behindBreakersOf, probeNow } from '../endpoints/breakers.js';
import { BehindBreakers, waitWords } from './retry.js';

const RESEND_MAX = 200;

const Resend = namedObject('Resend', {
  ids: Type.Array(Id, { minItems: 1, maxItems: RESEND_MAX }),
});
const Resent = namedObject('Resent', {
  resent: int(),
  behind_breakers: BehindBreakers,
  content: Type.Array(
    object({
      uid: Id,
      error: nullable(string('Why the delivery is not sent again; null if it is.')),
    }),
  ),
});

export const resendRoutes: readonly Route[] = [
  projectRoute(
    'POST /eventdeliveries/forceresend',
    `Sends up to ${RESEND_MAX} deliveries now, including successful and waiting ones, and returns a result for each.`,
    { body: Resend, data: Resent, name: 'forceResend' },
    async (call) => {
      const { planes, project, body } = call;
      const content: { uid: string; error: string | null }[] = [];
      const due: Parameters<typeof behindBreakersOf>[1][number][] = [];
      for (const uid of new Set(body.ids)) {
        const delivery = await findEventDelivery(planes, project.id, uid);
        const error = refusal(delivery, true);
        const isResent = !error && (await sendNow(call, delivery!, RESENT)).isDue;
        content.push({ uid, error: isResent ? null : (error?.sentence ?? CHANGED) });
        if (!isResent) continue;
        const { endpoint_id: endpointId, endpoint_name: endpointName } = delivery!;
        due.push({ endpointId, endpointName, count: 1 });
      }
      const behind = await behindBreakersOf(call, due);
      return {
        message: `${due.length} of ${content.length} event deliveries are queued${waitWords(behind)}`,
        data: { resent: due.length, content, behind_breakers: behind },
      };
    },
  ),
];

/** `success` only if forced. In the last two a delivery waits for its next attempt. */
export const RESENT = ['success', 'failure', 'discarded', 'scheduled', 'retry'] as const;

/**
 * Fails if the delivery has just left the statuses in `from`. If the circuit breaker of its
 * endpoint is open, the delivery is its probe.
 */
export async function sendNow(
  call: ProjectCall,
  delivery: EventDeliveryRow,
  from: readonly EventDeliveryStatus[],
): Promise<{ readonly isDue: boolean; readonly isProbe: boolean }> {
  const dueInMs = await probeNow(call, delivery.endpoint_id);
  const isDue = await resendEventDelivery(call.planes, delivery, from, dueInMs);
  return { isDue, isProbe: dueInMs > 0 };
}

export const CHANGED = 'the event delivery has just changed its status';

/** With a fix. Undefined if the delivery can be sent now. */
export function refusal(
  delivery: EventDeliveryRow | undefined,
  isForced: boolean,
): { sentence: string; fix: string; conflict?: ConflictCode } | undefined {
  if (!delivery)
    return {
      sentence: 'there is no event delivery with this id in this project',
      fix: 'check the id',
    };
  const { status, endpoint_status } = delivery;
  if (endpoint_status === 'deleted')
    return {
      sentence: 'the endpoint was deleted',
      conflict: 'endpoint_deleted',
      fix: 'send the event to another endpoint',
    };
  if (endpoint_status === 'inactive')
    return {
      sentence: 'the endpoint is inactive',
      conflict: 'endpoint_inactive',
      fix: 'activate the endpoint first',
    };
  if (status === 'processing')
    return {
      sentence: 'an agent is sending the event delivery',
      conflict: 'delivery_in_progress',
      fix: 'wait for the attempt',
    };
  if (endpoint_status === 'paused' && (status === 'scheduled' || status === 'retry'))
    return {
      sentence: 'the delivery is held because its endpoint is paused',
      conflict: 'endpoint_paused',
      fix: 'activate the endpoint to send its held deliveries',
    };
  return isForced || status !== 'success'
    ? undefined
    : {
        sentence: 'the event was already delivered',
        fix: 'add ?force=true to send it again',
      };
}
