import type { Endpoint, EventDelivery } from '@gateway/client';

/** A sentence, with a few words for a row in a list. */
interface StateWords {
  readonly remark: string;
  readonly sentence: string;
}

const AGAIN = 'When it is active again, select “Resend”.';

const DELAYED: StateWords = {
  remark: 'delayed',
  sentence: 'This message is delayed on our side. You need not do anything.',
};

const WAITS: Readonly<Record<NonNullable<EventDelivery['waits_for']>, StateWords>> = {
  paused: {
    remark: 'endpoint paused',
    sentence: 'The endpoint is paused. We keep this message until it is activated.',
  },
  retry: {
    remark: 'next try',
    sentence: 'Your server did not accept this message. We try again by ourselves.',
  },
  order: {
    remark: 'in order',
    sentence: 'It is sent after an earlier message with the same key.',
  },
  breaker: {
    remark: 'sending paused',
    sentence:
      'We paused sending because your server did not accept our requests. We send this message as soon as it accepts one.',
  },
  back_off: {
    remark: 'asked to wait',
    sentence: 'Your server asked for fewer requests. We send this message after the pause.',
  },
  rate_limit: {
    remark: 'rate limit',
    sentence: 'The endpoint has a rate limit, and other messages come first.',
  },
  slow: {
    remark: 'slow endpoint',
    sentence: 'Your server answers slowly, so that messages wait for each other.',
  },
  lookup: DELAYED,
  shortage: DELAYED,
  function: DELAYED,
};

const ENDPOINT_DELETED: StateWords = {
  remark: 'endpoint deleted',
  sentence: 'The endpoint was deleted before the message was sent.',
};

const DISCARDS: Readonly<Record<NonNullable<EventDelivery['discard_reason']>, StateWords>> = {
  project_deleted: ENDPOINT_DELETED,
  endpoint_deleted: ENDPOINT_DELETED,
  endpoint_inactive: {
    remark: 'endpoint inactive',
    sentence: `We did not send this message, because the endpoint was inactive. ${AGAIN}`,
  },
  function: { remark: 'not sent', sentence: 'This message was not meant for this endpoint.' },
};

export function deliveryWords({
  status,
  waits_for: wait,
  discard_reason: discarded,
  attempts,
  last_attempt: last,
}: Pick<
  EventDelivery,
  'status' | 'waits_for' | 'discard_reason' | 'attempts' | 'last_attempt'
>): StateWords {
  switch (status) {
    case 'success':
      return { remark: '', sentence: 'Your server accepted this message.' };
    case 'processing':
      return { remark: 'being sent', sentence: 'We are sending this message now.' };
    case 'failure':
      return last?.http_status === 410
        ? {
            remark: 'endpoint deactivated',
            sentence: `Your server answered 410 Gone, so we deactivated the endpoint. ${AGAIN}`,
          }
        : {
            remark: 'no retry left',
            sentence: `We tried ${attempts === 1 ? 'once' : `${attempts} times`}, and do not try again by ourselves. Once your server accepts messages, select “Resend”.`,
          };
    case 'discarded':
      return discarded
        ? DISCARDS[discarded]
        : { remark: 'not sent', sentence: 'We did not send this message.' };
    case 'scheduled':
    case 'retry':
      return wait ? WAITS[wait] : { remark: '', sentence: 'We send this message in a moment.' };
  }
}

const INACTIVE: Readonly<Record<NonNullable<Endpoint['inactive_reason']>, string>> = {
  gone: 'Your server answered 410 Gone, which tells us to stop, so we deactivated this endpoint.',
  failing: 'Your server accepted no message for days, so we deactivated this endpoint.',
};

export function inactiveSentence({
  inactive_reason: reason,
}: Pick<Endpoint, 'inactive_reason'>): string {
  const why = reason ? INACTIVE[reason] : 'This endpoint is inactive.';
  return `${why} We send nothing to it until it is activated.`;
}
