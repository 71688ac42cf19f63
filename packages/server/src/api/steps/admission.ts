import { DEFAULT_SHARD } from '@gateway/store/shards';
import {
  reachAccount,
  reachOrganisation,
  reachProject,
  requireInstanceAdmin,
  requireScope,
} from '../../auth/access.js';
import { authenticate } from '../../auth/authenticate.js';
import { ownedBy } from '../../auth/owned.js';
import { largestBody } from '../../http/body.js';
import { accessOf } from '../route.js';
import { LARGE_BYTES } from '../shares.js';
import { stepsOf, type RouteExchange, type RouteStep } from './step.js';

const LOOK_UP = { effect: 'looks_up', withinMs: 10_000 } as const;

/** Runs steps that look up records, within one time limit. */
export function lookUp(...inner: readonly RouteStep[]): RouteStep {
  return (route, parts) => {
    if (route.reach === 'open') return undefined;
    const steps = stepsOf(inner, route, parts);
    const inTurn = async (it: RouteExchange) => {
      for (const step of steps) await step(it);
    };
    return (it) => parts.admission.ask(() => inTurn(it), LOOK_UP);
  };
}

export const identify: RouteStep =
  (_, { auth, records, admission }) =>
  async (it) => {
    const caller = await authenticate(it.ctx.req, { ...auth, records });
    admission.keyUse.record(caller);
    it.ctx.state['isPortal'] = caller.type === 'portal';
    it.call.caller = caller;
  };

export const limitRequests: RouteStep =
  (_, { admission: { limit, portalLimit } }) =>
  ({ ctx, call: { caller } }) =>
    (caller.type === 'portal' ? portalLimit : limit)(
      caller,
      ({ limit: most, remaining, resetSeconds }) =>
        ctx.set({
          'ratelimit-limit': `${most}`,
          'ratelimit-remaining': `${remaining}`,
          'ratelimit-reset': `${resetSeconds}`,
        }),
    );

export const checkScope: RouteStep = (route) => {
  const access = accessOf(route);
  return ({ call }) => requireScope(call.caller, access);
};

/** Finds the organisation or project in the path, and requires a role there. */
export const reach: RouteStep = (route, parts) => {
  const access = accessOf(route);
  const { read, shardOf } = parts.admission;
  if (route.reach === 'organisation')
    return async ({ call }) => {
      const { organisation_id: id = '' } = call.params;
      call.organisation = await reachOrganisation(call.caller, id, access, parts);
    };
  if (route.reach === 'project')
    return async ({ call }) => {
      const { project_id: id = '' } = call.params;
      call.project = await reachProject(call.caller, id, access, parts);
      const { planes } = await shardOf(id, call.project.shard);
      call.planes = planes;
      // Replicas have only the default shard.
      call.read =
        planes.shard === DEFAULT_SHARD
          ? (run) => read((replica) => run({ shard: DEFAULT_SHARD, ...replica }))
          : (run) => run(planes);
    };
  return ({ call: { caller } }) =>
    route.role === 'instance' ? requireInstanceAdmin(caller, parts) : reachAccount(caller, access);
};

export const checkOwner: RouteStep = (route) => {
  const requireOwned = ownedBy(route);
  return async ({ call }) => {
    const { caller, project, planes, params } = call;
    if (caller.type !== 'portal') return;
    call.ownerId = caller.owner_id;
    await requireOwned({ project, planes, ownerId: caller.owner_id, id: params['id'] });
  };
};

/** Determines whose limits apply. */
export const attribute: RouteStep = (route, { addressOf, config }) => {
  // Bodies without a message contain only configuration, so a low limit is enough.
  const bodyLimit = route.carriesMessage ? largestBody(config) : LARGE_BYTES;
  return (it) => {
    const { caller, project } = it.call as Partial<typeof it.call>;
    const id = caller?.id ?? addressOf(it.ctx.req);
    it.sender = { id, isStranger: !caller };
    it.projectId = project?.id ?? '';
    it.owner = caller?.type === 'portal' ? `links of ${it.projectId}` : (project?.id ?? id);
    it.bodyLimit = bodyLimit;
    it.createsEvents = route.createsEvents === true;
  };
};
