import type { EventContent, MessageType } from '@gateway/store/events';
import { customHeaderProblem, headerOwner, MESSAGE_TYPE_HEADER } from '@gateway/core/events';
import {
  clip,
  isObject,
  isPlain,
  isTooDeep,
  nesting,
  NESTING_MAX,
  rawJsonValue,
  withoutExcerpt,
} from '@gateway/core/json';
import type { Rejection } from './reject-codes.js';
import { envelopeReason } from './envelopes.js';

const NAME_LENGTH_MAX = 512;
const NOTES_MAX = 20;
const MESSAGE_TYPES: readonly string[] = ['single', 'fanout', 'broadcast'] satisfies MessageType[];

/** `too_deep` if the text, which need not be JSON, nests more than 200 deep. */
export function checkNesting(text: string): Rejection | null {
  return isTooDeep(text)
    ? {
        code: 'too_deep',
        reason: `The message nests objects or arrays ${nesting(text)} deep; at most ${NESTING_MAX} are accepted.`,
      }
    : null;
}

/** May start with a byte order mark. Rejects with `too_deep`, `not_json` or `invalid_message`. */
export function parseIngestMessage(
  decoded: string,
  contentType?: string,
): EventContent | Rejection {
  const text = decoded.startsWith('\ufeff') ? decoded.slice(1) : decoded;
  const tooDeep = checkNesting(text);
  if (tooDeep) return tooDeep;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return {
      code: 'not_json',
      reason: `The message is not JSON: ${sentence(error)}. Write an ingest message, or give the source a transform function.${typeOf(contentType)}`,
    };
  }
  return checkIngestMessage(value, text, 'invalid_message');
}

/** One result, which must be JSON. Rejects with `too_deep` or `invalid_transform_output`. */
export function parseTransformOutput(text: string): EventContent | Rejection {
  return (
    checkNesting(text) ?? checkIngestMessage(JSON.parse(text), text, 'invalid_transform_output')
  );
}

function checkIngestMessage(
  value: unknown,
  text: string,
  code: 'invalid_message' | 'invalid_transform_output',
): EventContent | Rejection {
  const subject =
    code === 'invalid_message' ? 'The message' : 'The result of the transform function';
  const envelope = code === 'invalid_message' ? envelopeReason(value) : undefined;
  if (envelope !== undefined) return { code, reason: envelope };
  if (!isObject(value))
    return {
      code,
      reason: `${subject} must be a JSON object with event_type and data, not ${kindOf(value)}.`,
    };
  const problems: string[] = [];

  const eventType = value['event_type'];
  if (eventType === undefined) problems.push('event_type is missing');
  else if (typeof eventType !== 'string')
    problems.push(`event_type must be a string, not ${kindOf(eventType)}`);
  else if (eventType === '') problems.push('event_type is empty');
  else addNameProblem(problems, 'event_type', eventType);

  if (value['data'] === undefined) problems.push('data is missing');
  else if (!isObject(value['data']))
    problems.push(`data must be an object, not ${kindOf(value['data'])}`);

  const nameIn = (field: 'idempotency_key' | 'owner_id' | 'endpoint_id'): string | null => {
    const given = value[field];
    if (given === undefined || given === null || given === '') return null;
    if (typeof given === 'string') addNameProblem(problems, field, given);
    else problems.push(`${field} must be a string, not ${kindOf(given)}`);
    return given as string;
  };
  const idempotencyKey = nameIn('idempotency_key');
  const ownerId = nameIn('owner_id');
  const endpointId = nameIn('endpoint_id');

  const customHeaders = value['custom_headers'] ?? {};
  const leftOut: string[] = [];
  let messageType = 'single';
  if (!isObject(customHeaders))
    problems.push(
      `custom_headers must be an object of string to string, not ${kindOf(customHeaders)}`,
    );
  else {
    for (const name in customHeaders) {
      const header = customHeaders[name];
      const problem =
        typeof header === 'string'
          ? customHeaderProblem(name, header)
          : `must be a string, not ${kindOf(header)}`;
      if (typeof header !== 'string' || problem)
        problems.push(`custom_headers["${clip(name, 61)}"] ${problem}`);
      else if (name.toLowerCase() === MESSAGE_TYPE_HEADER) {
        if (MESSAGE_TYPES.includes(header.toLowerCase())) messageType = header.toLowerCase();
        else
          problems.push(
            `custom_headers["${name}"] must be ${MESSAGE_TYPES.join(', ')}, not "${clip(header, 61)}"`,
          );
      } else if (headerOwner(name)) leftOut.push(name);
    }
  }

  if (problems.length > 0)
    return {
      code,
      reason: `${subject} is not an ingest message: ${problems.slice(0, 10).join('; ')}.`,
    };
  return {
    eventType: eventType as string,
    data: rawJsonValue(text, 'data') as string,
    headers: customHeaders as Record<string, string>,
    notes: leftOut.length > 0 ? notesOn(leftOut) : null,
    messageType: messageType as MessageType,
    idempotencyKey,
    ownerId,
    endpointId,
  };
}

/** Only known headers, with short names, are omitted. */
function notesOn(leftOut: readonly string[]): string {
  const notes = leftOut
    .slice(0, NOTES_MAX)
    .map((name) => `the header "${name}" was omitted: ${headerOwner(name)} sets it`);
  if (leftOut.length > NOTES_MAX)
    notes.push(`${leftOut.length - NOTES_MAX} more headers were omitted`);
  return JSON.stringify(notes);
}

function addNameProblem(problems: string[], field: string, value: string): void {
  if (value.length > NAME_LENGTH_MAX)
    problems.push(`${field} has ${value.length} characters, more than ${NAME_LENGTH_MAX}`);
  else if (!isPlain(value)) problems.push(`${field} contains a control character`);
  else if (!value.isWellFormed()) problems.push(`${field} contains half of a surrogate pair`);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function typeOf(contentType = ''): string {
  const type = clip(contentType.replace(/;[^]*$/, '').trim(), 101);
  return type && ` The message has the content type ${type}.`;
}

/** Without the position that newer V8 versions repeat. */
function sentence(error: unknown): string {
  return withoutExcerpt(error).replace(/ \(line \d+ column \d+\)$/, '');
}
