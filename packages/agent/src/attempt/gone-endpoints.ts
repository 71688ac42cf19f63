import { isOperational } from '@gateway/core/events';
import type { Endpoint } from '@gateway/ingest/routing/project';
import { deactivateEndpoint } from '@gateway/store/config';
import { INACTIVE_REASONS } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import type { InFlightDelivery } from '../model/delivery.js';

interface GoneEndpointsOptions extends Pick<AgentContext, 'database' | 'log'> {
  readonly notifier: { readonly isMailing: boolean; hurry(): void };
}

/**
 * Endpoints that respond 410 Gone are deactivated in the background. If that fails, the next 410
 * tries again.
 */
export class GoneEndpoints {
  /**
   * Already being deactivated. Each write makes all agents reload the configuration, so a
   * concurrent 410 must not write again.
   */
  readonly #gone = new WeakSet<Endpoint>();

  constructor(private readonly options: GoneEndpointsOptions) {}

  deactivate(endpoint: Endpoint, { eventType }: Pick<InFlightDelivery, 'eventType'>): void {
    if (this.#gone.has(endpoint)) return;
    this.#gone.add(endpoint);
    const { database, log, notifier } = this.options;
    const { projectId, id } = endpoint;
    log.warn(
      { endpoint_id: id, project_id: projectId },
      'Deactivated an endpoint that responded 410 Gone.',
    );
    const facts = {
      since: new Date().toISOString(),
      error: 'The endpoint answered 410 Gone.',
      ...(isOperational(eventType) && ({ is_operational: true } as const)),
    };
    const [reason, { isMailing }] = [INACTIVE_REASONS.gone, notifier];
    deactivateEndpoint(database.pool, projectId, id, reason, facts, isMailing).then(
      () => notifier.hurry(),
      (error: unknown) => {
        this.#gone.delete(endpoint);
        log.warn(
          { error, project_id: projectId, endpoint_id: id },
          'Could not deactivate an endpoint that responded 410 Gone; will retry on its next 410.',
        );
      },
    );
  }
}
