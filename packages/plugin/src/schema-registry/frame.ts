import { inflateSync } from 'node:zlib';
import { type CodecInput, UndecodableError } from '../codec.js';
import type { RegistrySettings } from './settings.js';

export interface SchemaFrame {
  /** The name of the schema for `load`, such as `id 7`. */
  readonly schema: string;
  /** The bytes after the id of the schema. */
  readonly rest: Uint8Array;
}

/**
 * Finds out which schema a message has been written with.
 * @throws `UndecodableError` if it does not say so
 */
export function readFrame(input: CodecInput, framing: RegistrySettings['framing']): SchemaFrame {
  switch (framing) {
    case 'confluent':
      return confluent(input.bytes);
    case 'apicurio':
      return apicurio(input.bytes);
    case 'glue':
      return glue(input.bytes, input.maxLength);
  }
}

/** https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop */
function confluent(bytes: Uint8Array): SchemaFrame {
  if (bytes.length < 5 || bytes[0] !== 0)
    throw unframed(bytes, 'a zero byte and a schema id of 4 bytes');
  return { schema: `id ${viewOf(bytes).getUint32(1)}`, rest: bytes.subarray(5) };
}

/** https://www.apicur.io/registry/docs/apicurio-registry/2.6.x: a zero byte and a long */
function apicurio(bytes: Uint8Array): SchemaFrame {
  if (bytes.length < 9 || bytes[0] !== 0)
    throw unframed(bytes, 'a zero byte and a schema id of 8 bytes');
  const id = viewOf(bytes).getBigInt64(1);
  return { schema: `id ${id}`, rest: bytes.subarray(9) };
}

const GLUE_VERSION = 3;
const GLUE_ZLIB = 5;

/** https://github.com/awslabs/aws-glue-schema-registry: version, compression and a UUID */
function glue(bytes: Uint8Array, maxLength: number): SchemaFrame {
  if (bytes.length < 18 || bytes[0] !== GLUE_VERSION || (bytes[1] !== 0 && bytes[1] !== GLUE_ZLIB))
    throw unframed(bytes, 'the 18 bytes of AWS Glue');
  const body = bytes.subarray(18);
  return {
    schema: `version ${uuid(bytes.subarray(2, 18))}`,
    rest: bytes[1] === GLUE_ZLIB ? inflated(body, maxLength) : body,
  };
}

function inflated(bytes: Uint8Array, maxOutputLength: number): Uint8Array {
  try {
    return inflateSync(bytes, { maxOutputLength });
  } catch (cause) {
    throw new UndecodableError(
      `It is compressed, and does not become a message of up to ${maxOutputLength} bytes.`,
      { fix: 'Send smaller messages, or raise ingest.max_message_bytes.', cause },
    );
  }
}

function unframed(bytes: Uint8Array, expected: string): UndecodableError {
  const begin = Buffer.from(bytes.subarray(0, 5)).toString('hex');
  return new UndecodableError(
    `It does not begin with ${expected}, but with the bytes ${begin}; it may have been written without a schema registry.`,
    {
      fix: 'Let the producer use the serializer of the registry, choose the framing that it uses, or remove the codec from the source.',
    },
  );
}

function uuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-');
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
