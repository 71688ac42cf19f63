import { Type, type TSchema } from '@sinclair/typebox';
import { CONFLICTS } from '@gateway/core/errors';
import { createsOnce, REPLAYED_HEADER } from '../api/idempotency.js';
import { editableAt } from '../api/preconditions.js';
import { RESOURCES } from '../api/resources.js';
import type { Route } from '../api/route.js';
import { Id, namedObject, object, oneOf } from '../http/schema.js';
import { operationsOf, pascal, type Operation } from '../api/operation.js';

/** JSON Schema 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

/** Only the properties used: https://spec.openapis.org/oas/v3.1.0 */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: Schema;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly [kind: string]: unknown;
  };
}

interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly [string];
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: {
    readonly required: true;
    readonly content: { readonly 'application/json': { readonly schema: Schema } };
  };
  readonly responses: Readonly<Record<string, unknown>>;
}

/** Always null. Generators do not know `type: null`, nor constants of other types than string. */
const Nothing = Type.Unsafe<null>({ type: ['string', 'null'], maxLength: 0 });

const ErrorAnswer = namedObject('Error', {
  status: Type.Boolean({ description: 'False.' }),
  message: Type.String({
    description:
      'Human-readable description of the error. Over a portal link, only `invalid_request` is described.',
  }),
  data: Nothing,
  code: Type.String({ description: 'Stable error code, listed in docs/reference/errors.md.' }),
  fix: Type.String({ description: 'How to fix the error.' }),
  errors: Type.Optional(
    Type.Array(object({ field: Type.String(), sentence: Type.String() }), {
      description: 'Invalid fields, each with its path.',
    }),
  ),
  conflict: Type.Optional(
    oneOf(CONFLICTS, {
      description: 'The state that does not allow the request, if it has a code.',
    }),
  ),
  request_id: Type.Optional(Type.String()),
});

const ERRORS = {
  400: 'The body is empty, not JSON, not UTF-8, or nested too deeply.',
  401: 'Credentials are missing or invalid.',
  403: 'The credentials do not allow this.',
  404: 'The object does not exist, or the credentials do not give access to it.',
  409: 'The state of the object does not allow this.',
  412: 'The object has changed: its ETag is not that of `If-Match`.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  422: 'Fields are invalid. `errors` lists all of them.',
  429: 'Too many requests. Retry after `Retry-After` seconds.',
  500: 'Internal error. The server log has the cause under `request_id`.',
  503: 'Postgres or KV does not respond. Retry after `Retry-After` seconds.',
} as const;

/**
 * @param hasBasic whether `server.auth.basic` has accounts
 * @throws Error if two different schemas share a name
 */
export function openApiDocument(
  routes: readonly Route[],
  {
    version,
    rootPath,
    hasBasic = false,
  }: { version: string; rootPath: string; hasBasic?: boolean },
): OpenApiDocument {
  const schemas: Record<string, Schema> = {};
  const place = (schema: TSchema) => hoisted(schema, schemas);
  const operations = operationsOf(routes);
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const operation of operations) {
    const isEdited = editableAt(operation.route, routes) !== undefined;
    (paths[operation.path] ??= {})[operation.route.method] = describe(operation, isEdited, place);
  }
  const error = { 'application/json': { schema: place(ErrorAnswer) } };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gateway',
      version,
      summary: 'The management API of the webhook gateway.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: `${rootPath}/api/v1` }],
    security: [{ key: [] }, ...(hasBasic ? [{ basic: [] }] : [])],
    tags: [...new Set(operations.map(({ group }) => group))].map((name) => ({
      name,
      description: RESOURCES[name]?.about,
    })),
    paths,
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'A personal API key or the key of a project.',
        },
        ...(hasBasic && {
          basic: {
            type: 'http',
            scheme: 'basic',
            description: 'An account of `server.auth.basic`.',
          },
        }),
      },
      responses: Object.fromEntries(
        Object.entries(ERRORS).map(([status, description]) => [
          status,
          { description, content: error },
        ]),
      ),
      schemas: Object.fromEntries(
        Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1)),
      ),
    },
  } as OpenApiDocument;
}

const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'Updates the object only if it still has this ETag.',
  schema: { type: 'string' },
};
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  ...{
    description: 'Alternative to `idempotency_key` in the body.',
    schema: { type: 'string', minLength: 1, maxLength: 512 },
  },
};
const CREATE_KEY = {
  ...IDEMPOTENCY_KEY,
  description:
    'Makes the request safe to repeat: within 24 hours, requests with the same key create one object.',
};
const REPLAYED = {
  [REPLAYED_HEADER]: {
    description: '`true` if the response is that of an earlier request with the same key.',
    schema: { type: 'string', const: 'true' },
  },
};

function describe(
  { route, path, parameters, group, name }: Operation,
  isEdited: boolean,
  place: (schema: TSchema) => Schema,
): OpenApiOperation {
  const { method, summary, query, body, data, status = 200 } = route;
  const inPath = parameters.map((parameter) => ({
    name: parameter,
    in: 'path',
    required: true,
    schema: place(parameter === 'name' ? Type.String() : Id),
  }));
  const required = new Set(query?.required);
  const inQuery = Object.entries(query?.properties ?? {}).map(([parameter, schema]) => ({
    name: parameter,
    in: 'query',
    required: required.has(parameter),
    ...(schema.description !== undefined && { description: schema.description }),
    schema: place(schema),
  }));
  const isConditional = isEdited && method !== 'get';
  const isOnce = createsOnce(route);
  const inHeaders = [
    ...(isConditional ? [IF_MATCH] : []),
    ...(isOnce
      ? [CREATE_KEY]
      : 'idempotency_key' in (body?.['properties'] ?? {})
        ? [IDEMPOTENCY_KEY]
        : []),
  ];
  const all = [...inPath, ...inQuery, ...inHeaders];
  const answer = object({
    status: Type.Boolean({ description: 'True.' }),
    message: Type.String(),
    data: data ?? Nothing,
  });
  const succeeded = {
    description: summary,
    ...(isOnce && { headers: REPLAYED }),
    content: { 'application/json': { schema: place(answer) } },
  };
  const errors = [
    ...(body ? [400, 413, 415] : []),
    ...[401, 403],
    ...(path.includes('{') || method === 'post' ? [404] : []),
    ...(method === 'get' ? [] : [409]),
    ...(isConditional ? [412] : []),
    ...[422, 429, 500, 503],
  ];
  return {
    operationId: `${group}${pascal(name)}`,
    tags: [group],
    summary,
    ...(all.length > 0 && { parameters: all }),
    ...(body && {
      requestBody: { required: true, content: { 'application/json': { schema: place(body) } } },
    }),
    responses: {
      ...Object.fromEntries([status, ...(route.alsoStatus ?? [])].map((code) => [code, succeeded])),
      ...Object.fromEntries(
        errors.map((code) => [code, { $ref: `#/components/responses/${code}` }]),
      ),
    },
  };
}

/** These describe forms and who may set a field. Other `x-` keywords are internal. */
const PUBLISHED = new Set(['x-form', 'x-label', 'x-default', 'x-unset', 'x-secret', 'x-set-by']);

/** Drops internal keywords. Titled schemas are moved to `schemas` and replaced by references. */
function hoisted(schema: unknown, schemas: Record<string, Schema>): Schema {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== 'object' || value === null) return value;
    const { title, ...rest } = value as Record<string, unknown>;
    const entries = Object.entries(rest).filter(
      ([keyword]) => !keyword.startsWith('x-') || PUBLISHED.has(keyword),
    );
    const plain = Object.fromEntries(
      entries.flatMap(widelyKnown).map(([keyword, it]) => [keyword, visit(it)]),
    );
    // Any other `title` is the schema of a property named `title`.
    if (typeof title !== 'string')
      return title === undefined ? plain : { title: visit(title), ...plain };
    const before = schemas[title];
    if (before && JSON.stringify(before) !== JSON.stringify(plain))
      throw new Error(`two schemas are called ${title}`);
    schemas[title] = plain;
    return { $ref: `#/components/schemas/${title}` };
  };
  return visit(schema) as Schema;
}

/** The key pattern of `Type.Record`. */
const ANY_NAME = '^(.*)$';

/**
 * Code generators do not know all keywords. A `type` with several types besides null is omitted,
 * and patterns matching any property name become `additionalProperties`.
 */
function widelyKnown([keyword, value]: [string, unknown]): [string, unknown][] {
  if (keyword === 'type' && Array.isArray(value) && value.filter((it) => it !== 'null').length > 1)
    return [];
  const members = keyword === 'patternProperties' ? (value as Schema)[ANY_NAME] : undefined;
  return [members === undefined ? [keyword, value] : ['additionalProperties', members]];
}
