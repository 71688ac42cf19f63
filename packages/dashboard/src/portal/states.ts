import type { Endpoint, EventDelivery } from '@gateway/client';

/** A sentence about a delivery or endpoint, with a few words for its row in a list. */
export interface StateWords {
  readonly remark: string;
  readonly sentence: string;
}

const AGAIN = 'When it is active again, select “Resend”.';

/** Why an unfinished delivery waits, by the reason that the API gives, which is for operators. */
const WAITS: readonly (readonly [reason: RegExp, words: StateWords])[] = [
  [
    /^The circuit breaker/,
    {
      remark: 'sending paused',
      sentence:
        'We paused sending because your server did not accept our requests. We send this message as soon as it accepts one.',
    },
  ],
  [
    /^Its endpoint has a rate limit/,
    {
      remark: 'rate limit',
      sentence: 'The endpoint has a rate limit, and other messages come first.',
    },
  ],
  [
    /^Its endpoint answers slowly/,
    {
      remark: 'slow endpoint',
      sentence: 'Your server answers slowly, so that messages wait for each other.',
    },
  ],
  [
    /./,
    {
      remark: 'delayed',
      sentence: 'This message is delayed on our side. You need not do anything.',
    },
  ],
];

/** Why a delivery was discarded. */
const DISCARDS: readonly (readonly [reason: RegExp, words: StateWords])[] = [
  [
    /^The endpoint was deleted/,
    {
      remark: 'endpoint deleted',
      sentence: 'The endpoint was deleted before the message was sent.',
    },
  ],
  [
    /^The endpoint is inactive/,
    {
      remark: 'endpoint inactive',
      sentence: `We did not send this message, because the endpoint was inactive. ${AGAIN}`,
    },
  ],
  [/./, { remark: 'not sent', sentence: 'This message was not meant for this endpoint.' }],
];

/** Returns what the owner of the endpoint reads about a delivery. */
export function deliveryWords({
  status,
  reason,
  attempts,
  endpoint_metadata: endpoint,
}: Pick<EventDelivery, 'status' | 'reason' | 'attempts' | 'endpoint_metadata'>): StateWords {
  const among = (rows: typeof WAITS) => rows.find(([pattern]) => pattern.test(reason ?? ''))?.[1];
  switch (status) {
    case 'success':
      return { remark: '', sentence: 'Your server accepted this message.' };
    case 'processing':
      return { remark: 'being sent', sentence: 'We are sending this message now.' };
    case 'failure':
      return reason?.includes('410 Gone')
        ? {
            remark: 'endpoint deactivated',
            sentence: `Your server answered 410 Gone, so we deactivated the endpoint. ${AGAIN}`,
          }
        : {
            remark: 'no retry left',
            sentence: `We tried ${attempts === 1 ? 'once' : `${attempts} times`}, and do not try again by ourselves. Once your server accepts messages, select “Resend”.`,
          };
    case 'discarded':
      return among(DISCARDS) ?? { remark: 'not sent', sentence: 'We did not send this message.' };
    case 'scheduled':
    case 'retry':
      if (endpoint.status === 'paused') {
        return {
          remark: 'endpoint paused',
          sentence: 'The endpoint is paused. We keep this message until it is activated.',
        };
      }
      return (
        among(WAITS) ??
        (status === 'retry'
          ? {
              remark: 'next try',
              sentence: 'Your server did not accept this message. We try again by ourselves.',
            }
          : { remark: '', sentence: 'We send this message in a moment.' })
      );
  }
}

/** Returns why an endpoint is inactive, for its owner. */
export function inactiveSentence({
  status_reason: reason,
}: Pick<Endpoint, 'status_reason'>): string {
  const days = /failed for (\d+ days)/.exec(reason ?? '')?.[1];
  const why = reason?.includes('410 Gone')
    ? 'Your server answered 410 Gone, which tells us to stop, so we deactivated this endpoint.'
    : days
      ? `Your server accepted no message for ${days}, so we deactivated this endpoint.`
      : 'This endpoint is inactive.';
  return `${why} We send nothing to it until it is activated.`;
}
