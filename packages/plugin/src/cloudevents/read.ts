import { hash } from 'node:crypto';
import { UndecodableError } from '../codec.js';
import { contentTypeOf, type Message } from '../source.js';
import { headerValue, textOfHeader } from './header-value.js';
import { rawMembers } from './json-members.js';

const STRUCTURED = /^application\/cloudevents(-batch)?(?:\+([\w.-]+))?\s*(?:;|$)/i;
const JSON_TYPE = /^[\w.-]+\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;
/** In HTTP and SQS, in Kafka, and in AMQP, whose names bridges to queues keep. */
const ATTRIBUTE = /^(?:ce[-_]|cloudEvents[:_])(.+)$/i;
const NAME = /^[a-z0-9]+$/;
const BASE64 = /^(?:[a-z\d+/]{4})*(?:[a-z\d+/]{2}==|[a-z\d+/]{3}=)?$/i;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;
const KEY_MAX = 400;

/** The attributes of a CloudEvent, all as texts. */
type Attributes = Map<string, string>;

/** A CloudEvent in a message or request. */
export interface CloudEventInput {
  readonly bytes: Uint8Array;
  readonly headers: Message['headers'];
  /** Whether the values of the headers are percent-encoded, as in HTTP. */
  readonly isHttp?: boolean;
}

/** The ingest messages of a batch, or the one of a single CloudEvent. */
export type CloudEvents = string | readonly string[];

/**
 * Makes ingest messages of CloudEvents 1.0, whose `data` keeps its text. The content type tells the
 * mode; without one, the attribute `specversion` among the headers means binary mode.
 *
 * @throws UndecodableError that names the attribute
 */
export function readCloudEvents({ bytes, headers, isHttp }: CloudEventInput): CloudEvents {
  const contentType = contentTypeOf(headers);
  const [mode, isBatch, format] = STRUCTURED.exec(contentType ?? '') ?? [];
  if (mode !== undefined && format?.toLowerCase() !== 'json')
    throw invalid(
      `The format ${format ?? 'of the content type'} of CloudEvents is not read.`,
      'Send them as application/cloudevents+json, or in binary mode.',
    );
  const attributes = mode === undefined ? attributesOf(headers, isHttp) : undefined;
  if (attributes?.has('specversion'))
    return binary(attributes, bytes, contentType ?? attributes.get('datacontenttype'));
  const text = textOf(bytes);
  const value = text === undefined ? undefined : parsed(text);
  if (value === undefined)
    throw invalid(
      mode === undefined
        ? 'The attribute specversion is missing, and the message is not JSON.'
        : 'The message is not JSON.',
      'Send a CloudEvent as application/cloudevents+json, or its attributes as headers.',
    );
  const isList = Array.isArray(value);
  if (mode !== undefined && isList !== (isBatch !== undefined))
    throw invalid(
      isList ? 'The message is an array.' : 'The message is not an array.',
      'Send a batch, and only a batch, as application/cloudevents-batch+json.',
    );
  if (!isList) return structured(value, text!);
  const texts = [...rawMembers(text!).values()];
  return value.map((one: unknown, at) => {
    try {
      return structured(one, texts[at]!);
    } catch (error) {
      const { message, fix } = error as UndecodableError;
      throw invalid(`CloudEvent ${at + 1} of ${value.length}: ${message}`, fix);
    }
  });
}

function attributesOf(headers: Message['headers'], isHttp = false): Attributes {
  const attributes: Attributes = new Map();
  for (const header in headers) {
    const [, name] = ATTRIBUTE.exec(header) ?? [];
    if (name !== undefined)
      attributes.set(
        name.toLowerCase(),
        isHttp ? textOfHeader(headers[header]!) : headers[header]!,
      );
  }
  return attributes;
}

function binary(attributes: Attributes, bytes: Uint8Array, contentType?: string): string {
  if (contentType !== undefined) attributes.set('datacontenttype', contentType);
  check(attributes);
  if (bytes.byteLength === 0) return messageOf(attributes, '{}');
  const isJson = contentType === undefined || JSON_TYPE.test(contentType);
  const text = isJson ? textOf(bytes) : undefined;
  const value = text === undefined ? undefined : parsed(text);
  if (value !== undefined) return messageOf(attributes, dataOf(value, text!));
  if (isJson && contentType !== undefined)
    throw invalid(
      'The data is not JSON, which the attribute datacontenttype says it is.',
      'Send the content type of the data.',
    );
  return messageOf(attributes, dataOfBytes(Buffer.from(bytes).toString('base64')));
}

function structured(value: unknown, text: string): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('It is not a JSON object.', 'Send an object with specversion, id, source, type.');
  const { data, data_base64: base64, ...members } = value as Record<string, unknown>;
  const attributes: Attributes = new Map();
  for (const [name, given] of Object.entries(members)) {
    if (given === null) continue;
    const isText = typeof given === 'string';
    if (!isText && (KNOWN.has(name) || (typeof given !== 'boolean' && !Number.isInteger(given))))
      throw wrong(
        name,
        KNOWN.has(name) ? 'must be a string' : 'must be a string, boolean or integer',
      );
    attributes.set(name, isText ? given : JSON.stringify(given));
  }
  check(attributes);
  if (base64 === undefined || base64 === null)
    return messageOf(
      attributes,
      data === undefined || data === null ? '{}' : dataOf(data, rawMembers(text).get('data')!),
    );
  if (data !== undefined && data !== null) throw wrong('data_base64', 'must not stand beside data');
  if (typeof base64 !== 'string' || !BASE64.test(base64))
    throw wrong('data_base64', 'must be base64');
  return messageOf(attributes, dataOfBytes(base64));
}

const REQUIRED = ['specversion', 'id', 'source', 'type'] as const;
const KNOWN: ReadonlySet<string> = new Set([
  ...REQUIRED,
  ...['datacontenttype', 'dataschema', 'subject', 'time'],
]);

function check(attributes: Attributes): void {
  for (const name of REQUIRED) if (!attributes.has(name)) throw wrong(name, 'is missing');
  for (const [name, value] of attributes) {
    if (!NAME.test(name) || name === 'data')
      throw wrong(name, 'must have a name of lower-case letters and digits');
    if (value === '' && KNOWN.has(name)) throw wrong(name, 'is empty');
    // eslint-disable-next-line no-control-regex -- these are what the specification forbids
    if (/[\u0000-\u001f\u007f-\u009f]/.test(value) || !value.isWellFormed())
      throw wrong(name, 'has a control character, or half of a surrogate pair');
  }
  const { specversion = '', source = '', time } = Object.fromEntries(attributes);
  if (specversion !== '1.0')
    throw wrong('specversion', `must be 1.0, not ${specversion.slice(0, 20)}`);
  if (/\s/.test(source)) throw wrong('source', 'must be a URI reference, without blanks');
  if (time !== undefined && !(TIME.test(time) && !Number.isNaN(Date.parse(time))))
    throw wrong('time', 'must be a time of RFC 3339, such as 2026-01-31T12:00:00Z');
}

function wrong(name: string, predicate: string): UndecodableError {
  return invalid(
    `The attribute ${name.slice(0, 100)} ${predicate}.`,
    'Correct the producer, or make CloudEvents with an SDK.',
  );
}

function invalid(message: string, fix: string): UndecodableError {
  return new UndecodableError(message, { fix });
}

/**
 * Data of an event is an object. Other data is the only member of one; so is an object that could be
 * mistaken for that.
 */
function dataOf(value: unknown, raw: string): string {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const [name, ...others] = isObject ? Object.keys(value) : ['data'];
  const isMistakable = others.length === 0 && (name === 'data' || name === 'data_base64');
  return isMistakable ? `{"data":${raw}}` : raw;
}

function dataOfBytes(base64: string): string {
  return `{"data_base64":"${base64}"}`;
}

/** The attributes become the headers of binary mode in HTTP. */
function messageOf(attributes: Attributes, data: string): string {
  const { id, source, type, datacontenttype = 'application/json' } = Object.fromEntries(attributes);
  const isJson = JSON_TYPE.test(datacontenttype);
  const headers: Record<string, string> = {
    'content-type': isJson ? datacontenttype : 'application/json',
  };
  for (const [name, value] of attributes)
    if (name !== 'datacontenttype' || !isJson) headers[`ce-${name}`] = headerValue(value);
  const key = `${source} ${id}`;
  const name = key.length <= KEY_MAX ? key : `sha256=${hash('sha256', key)}`;
  const head = { event_type: type, idempotency_key: name, custom_headers: headers };
  return `${JSON.stringify(head).slice(0, -1)},"data":${data}}`;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
