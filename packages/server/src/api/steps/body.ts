import type { TSchema } from '@sinclair/typebox';
import { rawJsonValue } from '@gateway/core/json';
import { parseBody, requireJson, unstorableStrings } from '../../http/body.js';
import {
  assertValid,
  bodyValidator,
  object,
  queryValidator,
  takeIgnored,
} from '../../http/schema.js';
import type { AppContext } from '../context.js';
import type { HttpExchange, RouteStep } from './step.js';

type ContextStep<Ended = unknown> = (context: AppContext) => (it: HttpExchange) => Ended;

export const requirePace: ContextStep =
  ({ admission }) =>
  ({ projectId }) =>
    admission.requirePace(projectId);

export const receiveBody: ContextStep<Promise<void>> =
  ({ admission }) =>
  async (it) => {
    const { bodyLimit: limit, sender } = it;
    const { bytes, release } = await admission.receive(it.ctx.req, { limit, sender });
    it.bytes = bytes;
    it.release = release;
  };

/** After the body, so that a slow upload does not block other requests. */
export const takeShare: ContextStep =
  ({ admission }) =>
  async (it) => {
    const { owner, bytes, createsEvents } = it;
    const release = await admission.takeShare(owner, { bytes: bytes.length, createsEvents });
    it.release();
    it.release = release;
  };

export const pace: RouteStep = (route, parts) =>
  route.createsEvents ? requirePace(parts) : undefined;

export const receive: RouteStep = (route, parts) => {
  if (!route.body) return undefined;
  const received = receiveBody(parts);
  return (it) => {
    requireJson(it.ctx.req);
    return received(it);
  };
};

export const share: RouteStep = (_, parts) => takeShare(parts);

export const validateQuery: RouteStep = (route) => {
  const validate = queryValidator(route.query ?? object({}));
  return ({ ctx, call, dialect }) => {
    const query = dialect.query(ctx.query);
    assertValid(validate(query));
    call.query = query as never;
  };
};

/** Only the property named by `raw` may contain strings that Postgres cannot store. */
export const validateBody: RouteStep = ({ body: schema, raw, each }) => {
  if (!schema) return undefined;
  const validate = bodyValidator(each === undefined ? schema : withAnyElements(schema, each));
  return (it) => {
    const { value, text } = parseBody(it.bytes);
    const rewritten = it.dialect.body(value);
    assertValid(validate(value));
    it.ignored = [...rewritten, ...takeIgnored(schema, value)];
    assertValid(
      unstorableStrings(text, raw === undefined ? value : { ...(value as object), [raw]: null }),
    );
    it.call.body = value as never;
    if (raw !== undefined) it.call.raw = rawJsonValue(text, raw) ?? '';
  };
};

function withAnyElements(schema: TSchema, name: string): TSchema {
  const { [name]: list, ...others } = schema['properties'] as Readonly<Record<string, TSchema>>;
  return { ...schema, properties: { ...others, [name]: { ...list!, items: {} } } };
}
