import type { Endpoint } from '@gateway/ingest/routing/project';
import { deactivateEndpoint, type NotificationFacts } from '@gateway/store/config';
import type { AgentContext } from '../config/agent-context.js';

interface GoneEndpointsOptions extends Pick<AgentContext, 'database' | 'log'> {
  readonly notifier: { disabledFacts(reason: string): NotificationFacts | null; hurry(): void };
}

/**
 * Deactivates endpoints that answered 410 Gone, in the background. After an error the next 410
 * retries.
 */
export class GoneEndpoints {
  /** Requests in flight get a 410 too, and each write makes all agents reload the configuration. */
  readonly #gone = new WeakSet<Endpoint>();

  constructor(private readonly options: GoneEndpointsOptions) {}

  deactivate(endpoint: Endpoint): void {
    if (this.#gone.has(endpoint)) return;
    this.#gone.add(endpoint);
    const { database, log, notifier } = this.options;
    const { projectId, id } = endpoint;
    log.warn(
      { endpoint_id: id, project_id: projectId },
      'An endpoint answered 410 Gone and is deactivated.',
    );
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
