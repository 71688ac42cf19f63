import { createRequire } from 'node:module';
import type * as Ajv from 'ajv/dist/2020.js';
import type { ConnectionSchema } from '../crypto/sealing.js';
import { isObject } from '../json/json-value.js';

/** Undefined if connections can be checked with the schema. */
export function connectionSchemaProblem(schema: ConnectionSchema): string | undefined {
  // Loaded only for third-party plugins, because it takes long.
  const { Ajv2020 } = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof Ajv;
  try {
    new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
  } catch (error) {
    return `is not a JSON Schema: ${(error as Error).message}`;
  }
  if ((schema['type'] ?? 'object') !== 'object' || schema['$async'] !== undefined)
    return 'must be the JSON Schema of an object, without $async';
  // Secrets are sealed and masked only in `properties` of objects.
  const marked = JSON.stringify(schema).split('"x-secret":true').length - 1;
  if (marked > secretsOf(schema))
    return 'marks a secret (x-secret) elsewhere than in `properties` of objects, where it would be stored in plain text';
  return undefined;
}

function secretsOf({ properties }: ConnectionSchema): number {
  const fields = isObject(properties) ? Object.values(properties).filter(isObject) : [];
  return fields.reduce(
    (sum, field) => sum + (field['x-secret'] === true ? 1 : secretsOf(field)),
    0,
  );
}
