import { mayChange, type EventRoute, routingOutcomes } from '@gateway/core/routing';
import type { ReadyEvent } from '../message/ready-message.js';
import type { ConfigCache } from './config-cache.js';
import type { Matcher } from './matcher.js';
import type { Endpoint } from './project.js';

/**
 * Null leaves the event pending: the configuration may be old, or the project is over its share.
 * Failures are left to the queues, which refresh the configuration first.
 */
export function routeInCommit(
  {
    configCache,
    matcher,
  }: {
    readonly configCache: Pick<ConfigCache, 'isCurrent' | 'projects'>;
    readonly matcher: Pick<Matcher, 'route'>;
  },
  event: ReadyEvent,
): EventRoute<Endpoint> | null {
  if (!configCache.isCurrent(event.projectId)) return null;
  const routed = matcher.route(configCache.projects.get(event.projectId), event);
  return !routed ||
    (routingOutcomes[routed.outcome].status === 'failed' && mayChange(routed.outcome))
    ? null
    : routed;
}
