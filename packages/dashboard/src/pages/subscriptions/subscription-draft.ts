import type { CreateSubscription, Subscription } from '@gateway/client';
import { type JsonObject, objectOf } from '../../format/json.js';

/** Event types are separated by commas, and filters are JSON text. */
export interface SubscriptionDraft {
  readonly name: string;
  readonly endpointId: string;
  readonly types: string;
  readonly body: string;
  readonly headers: string;
}

export const newSubscription: SubscriptionDraft = {
  name: '',
  endpointId: '',
  types: '*',
  body: '',
  headers: '',
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
}: SubscriptionDraft):
  Required<Omit<CreateSubscription, 'is_disabled' | 'function' | 'ordering'>> | undefined {
  const [bodyFilter, headerFilter] = [objectOf(body), objectOf(headers)];
  if (bodyFilter.problem !== undefined || headerFilter.problem !== undefined) return undefined;
  return {
    name: name.trim(),
    endpoint_id: endpointId,
    filter_config: {
      event_types: typesOf(types),
      filter: { body: bodyFilter.value, headers: headerFilter.value },
    },
  };
}

export function filterWords({ headers, body }: Subscription['filter_config']['filter']): string {
  const names = [...Object.keys(body), ...Object.keys(headers).map((name) => `header ${name}`)];
  return names.length === 0 ? 'none' : names.join(', ');
}
