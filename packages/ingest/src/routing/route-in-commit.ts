import { mayChange, type Route, routingOutcomes } from '@gateway/core/routing';
import type { ReadyEvent } from '../message/ready-message.js';
import type { ConfigCache } from './config-cache.js';
import type { Matcher } from './matcher.js';
import type { Endpoint } from './project.js';

/**
 * Routes an event by the configuration in memory, in the commit that accepts it. Null leaves it pending: the configuration may be old, or the project is over its
 * share. Failures are left to the queues too, which make sure that the configuration is up to date before they decide.
 */
export function routeInCommit(
  { configCache, matcher }: { readonly configCache: Pick<ConfigCache, 'isCurrent' | 'projects'>; readonly matcher: Pick<Matcher, 'route'> },
  event: ReadyEvent,
): Route<Endpoint> | null {
  if (!configCache.isCurrent(event.projectId)) return null;
  const routed = matcher.route(configCache.projects.get(event.projectId), event);
  return !routed || (routingOutcomes[routed.outcome].status === 'failed' && mayChange(routed.outcome)) ? null : routed;
}
