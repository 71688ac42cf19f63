import { isDeepStrictEqual } from 'node:util';
import { isGatewayError } from '@gateway/core/errors';
import { MASK } from '@gateway/core/logging';
import { insertAuditEntries, type AuditEntry } from '@gateway/store/people';
import { organisationsOf } from '../auth/access.js';
import { stringify, type ApiAnswer } from '../http/response.js';
import { operationsOf } from './operation.js';
import { pathOf, showOfCreated, withoutInput, type AnyCall, type Route } from './route.js';

type Reached = Omit<AnyCall, 'project' | 'organisation'> &
  Partial<Pick<AnyCall, 'project' | 'organisation'>>;
type Audited = (call: AnyCall) => Promise<ApiAnswer>;

/** A longer field, such as a message, is replaced by its length. */
const FIELD_MAX = 2_000;
/** Resource views already hide secrets. */
const SECRETS = new Set(['key', 'secret', 'token', 'password', 'link']);

/**
 * Wraps an audited route. An entry compares the resource before and after the change, as returned
 * by its GET route, which masks secrets; without such a route, it contains the response.
 *
 * The entry is a separate statement after the change. If it fails, the request still succeeds and
 * the server logs an error. A process killed in between leaves a change without an entry.
 */
export function auditor(routes: readonly Route[]): (route: Route) => Audited | undefined {
  const operations = operationsOf(routes);
  const actionOf = new Map(operations.map(({ route, group, name }) => [route, `${group}.${name}`]));
  return (route) => {
    if (route.method === 'get' || route.reach === 'open' || route.isAudited === false)
      return undefined;
    const shown = shownBy(route, routes);
    const action = actionOf.get(route)!;
    return async (call) => {
      const isCreated = route.status === 201;
      const before = isCreated ? undefined : await look(shown, call);
      const answer = await route.run(call);
      try {
        const id = isCreated ? idOfCreated(shown, answer.data) : idIn(shown, call);
        const after = shown
          ? route.method === 'delete'
            ? undefined
            : await look(shown, call, id)
          : withoutSecrets(answer.data);
        const entry = {
          ...actorOf(call),
          action,
          resource_id: id ?? null,
          changes: stringify(changesOf(before, after)),
          request_id: call.requestId,
        };
        await write(call, entry, answer.organisationId);
      } catch (error) {
        const { actor_type, actor_id } = actorOf(call);
        call.log.error(
          { request_id: call.requestId, action, actor_type, actor_id, error },
          'Could not write a change to the audit log.',
        );
      }
      return answer;
    };
  };
}

/** The GET route with the longest matching path. */
function shownBy(route: Route, routes: readonly Route[]): Route | undefined {
  const path = pathOf(route);
  const alike = routes.filter(({ method, reach }) => method === 'get' && reach === route.reach);
  if (route.status === 201) return showOfCreated(route, alike);
  if (route.path === '') return alike.find((it) => it.path === '');
  return alike
    .filter((it) => /:\w+$|\/me$/.test(it.path) && `${path}/`.startsWith(`${pathOf(it)}/`))
    .sort((one, other) => other.path.length - one.path.length)[0];
}

async function look(route: Route | undefined, call: AnyCall, id?: string): Promise<unknown> {
  if (!route) return undefined;
  try {
    const params =
      id === undefined ? call.params : { ...call.params, [parameterOf(route) ?? 'id']: id };
    return (await route.run({ ...withoutInput(call), params, id: params['id'] ?? call.id })).data;
  } catch (error) {
    if (isGatewayError(error, 'not_found')) return undefined;
    throw error;
  }
}

function parameterOf({ path }: Route): string | undefined {
  return /:(\w+)$/.exec(path)?.[1];
}

function idOfCreated(route: Route | undefined, data: unknown): string | undefined {
  const created = data as { readonly uid?: string; readonly name?: string } | null;
  return route && parameterOf(route) === 'name' ? created?.name : created?.uid;
}

function idIn(route: Route | undefined, call: Reached): string | undefined {
  const parameter = route && parameterOf(route);
  return parameter ? call.params[parameter] : (call.project?.id ?? call.organisation?.id);
}

function changesOf(before: unknown, after: unknown): Record<string, unknown> {
  const [old, now] = [before, after].map(
    (it) => JSON.parse(stringify(it ?? {})) as Record<string, unknown>,
  ) as [Record<string, unknown>, Record<string, unknown>];
  const changes: Record<string, unknown> = {};
  for (const field of new Set([...Object.keys(old), ...Object.keys(now)])) {
    if (field === 'updated_at' || isDeepStrictEqual(old[field], now[field])) continue;
    changes[field] = {
      ...(Object.hasOwn(old, field) && { before: clipped(old[field]) }),
      ...(Object.hasOwn(now, field) && { after: clipped(now[field]) }),
    };
  }
  return changes;
}

function clipped(value: unknown): unknown {
  const { length } = JSON.stringify(value);
  return length > FIELD_MAX ? `${length} characters` : value;
}

function withoutSecrets(data: unknown): unknown {
  const isSecret = (name: string, value: unknown) => SECRETS.has(name) && typeof value === 'string';
  return JSON.parse(stringify(data ?? {}), (name, value: unknown) =>
    isSecret(name, value) ? MASK : value,
  );
}

function actorOf({
  caller,
  request,
  addressOf,
}: AnyCall): Pick<AuditEntry, 'actor_type' | 'actor_id' | 'key_id' | 'address'> {
  const address = addressOf(request);
  if (caller.type === 'process')
    return { actor_type: 'process', actor_id: caller.id, key_id: null, address };
  const isKey = caller.type === 'project' || caller.type === 'portal';
  return {
    actor_type: isKey ? caller.type : 'user',
    actor_id: isKey ? caller.id : caller.user_id,
    key_id: caller.id,
    address,
  };
}

/** A change of an account goes to each of the person's organisations. */
async function write(
  call: AnyCall,
  entry: Omit<AuditEntry, 'organisation_id' | 'project_id'>,
  organisationId: string | undefined,
): Promise<void> {
  const { project, organisation, caller, database }: Reached = call;
  const reached = project?.organisation_id ?? organisation?.id ?? organisationId;
  const mine =
    reached !== undefined || caller.type === 'process'
      ? []
      : (await organisationsOf(caller, call)).map(({ id }) => id);
  const ids = reached === undefined ? mine : [reached];
  if (ids.length === 0) return;
  await insertAuditEntries(
    database.knex,
    ids.map((organisation_id) => ({ organisation_id, project_id: project?.id ?? null, ...entry })),
  );
}
