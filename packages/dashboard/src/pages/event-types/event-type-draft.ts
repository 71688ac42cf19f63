import type { ChangedEventType, EventType } from '@gateway/client';
import { valueOf } from '../../format/json.js';

/** The form of an event type; schema and example are JSON text. */
export interface EventTypeDraft {
  readonly name: string;
  readonly description: string;
  readonly schema: string;
  readonly example: string;
}

export const newEventType: EventTypeDraft = { name: '', description: '', schema: '', example: '' };

const textOf = (value: unknown) => (value === null ? '' : JSON.stringify(value, null, 2));

export function draftOf({
  name,
  description,
  json_schema: schema,
  example,
}: EventType): EventTypeDraft {
  return { name, description, schema: textOf(schema), example: textOf(example) };
}

/** Converts a draft for the API; undefined while schema or example are invalid JSON. */
export function fieldsOf({
  description,
  schema,
  example,
}: EventTypeDraft): Omit<ChangedEventType, 'deprecated'> | undefined {
  const [schemaValue, exampleValue] = [valueOf(schema), valueOf(example)];
  if (schemaValue.problem !== undefined || exampleValue.problem !== undefined) return undefined;
  return {
    description: description.trim(),
    json_schema: schemaValue.value,
    example: exampleValue.value,
  };
}
