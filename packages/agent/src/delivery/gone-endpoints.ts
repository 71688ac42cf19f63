import type { Log } from '@gateway/core/logging';
import { deactivateEndpoint, type NotificationFacts } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import type { Endpoint } from '../config/config-cache.js';

export interface GoneEndpointsOptions {
  readonly database: Database;
  readonly log: Log;
  readonly notifier: { disabledFacts(reason: string): NotificationFacts | null; hurry(): void };
}

/** Deactivates endpoints that answer 410 Gone. */
export class GoneEndpoints {
  readonly #options: GoneEndpointsOptions;
  /** Endpoints as they were then: requests in flight get a 410 too, and each write makes every agent read the configuration. */
  readonly #gone = new WeakSet<Endpoint>();

  constructor(options: GoneEndpointsOptions) {
    this.#options = options;
  }

  deactivate(endpoint: Endpoint): void {
    if (this.#gone.has(endpoint)) return;
    this.#gone.add(endpoint);
    const { database, log, notifier } = this.#options;
    const { projectId, id } = endpoint;
    log.warn({ endpoint_id: id, project_id: projectId }, 'An endpoint answered 410 Gone and is deactivated.');
    const facts = notifier.disabledFacts('The endpoint answered 410 Gone.');
    deactivateEndpoint(database.pool, projectId, id, 'It answered 410 Gone.', facts).then(
      () => notifier.hurry(),
      (error: unknown) => {
        this.#gone.delete(endpoint);
        log.warn(
          { error, project_id: projectId, endpoint_id: id },
          'An endpoint that answered 410 could not be deactivated; its next answer tries again.',
        );
      },
    );
  }
}
