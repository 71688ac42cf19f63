import type { CreateSubscription, Subscription } from '@gateway/client';
import { type JsonObject, objectOf } from '../../format/json.js';

/** Event types are separated by commas, and filters are JSON text. */
export interface SubscriptionDraft {
  readonly name: string;
  readonly endpointId: string;
  readonly types: string;
  readonly body: string;
  readonly headers: string;
  readonly message: string;
}

export const newSubscription: SubscriptionDraft = {
  name: '',
  endpointId: '',
  types: '*',
  body: '',
  headers: '',
  message: '',
};

export function draftOf({
  name,
  endpoint_id: endpointId,
  filter_config: { event_types: types, filter },
}: Subscription): SubscriptionDraft {
  return {
    name,
    endpointId,
    types: types.join(', '),
    body: textOf(filter.body),
    headers: textOf(filter.headers),
    message: textOf(filter.message ?? {}),
  };
}

function textOf(filter: JsonObject): string {
  return Object.keys(filter).length === 0 ? '' : JSON.stringify(filter, null, 2);
}

/** Separated by commas, spaces or line breaks. */
export function typesOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((it) => it !== ''))];
}

/** Undefined while a filter is invalid JSON. */
export function fieldsOf({
  name,
  endpointId,
  types,
  body,
  headers,
  message,
}: SubscriptionDraft):
  Required<Omit<CreateSubscription, 'is_disabled' | 'function' | 'ordering'>> | undefined {
  const [ofBody, ofHeaders, ofMessage] = [objectOf(body), objectOf(headers), objectOf(message)];
  if (ofBody.problem !== undefined || ofHeaders.problem !== undefined) return undefined;
  if (ofMessage.problem !== undefined) return undefined;
  return {
    name: name.trim(),
    endpoint_id: endpointId,
    filter_config: {
      event_types: typesOf(types),
      filter: {
        body: ofBody.value,
        headers: ofHeaders.value,
        ...(message.trim() !== '' && { message: ofMessage.value }),
      },
    },
  };
}

export function filterWords({
  headers,
  body,
  message = {},
}: Subscription['filter_config']['filter']): string {
  const names = [
    ...Object.keys(body),
    ...Object.keys(headers).map((name) => `header ${name}`),
    ...Object.keys(message).map((name) => `message.${name}`),
  ];
  return names.length === 0 ? 'none' : names.join(', ');
}
