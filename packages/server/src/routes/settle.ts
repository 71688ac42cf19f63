import { settleDeliveries } from '@gateway/store/deliveries';
import type { ProjectCall } from '../api/route.js';

/**
 * Makes the waiting deliveries of an endpoint, or of a deleted project, agree with its new state. That state is committed, and agents look for what does not agree:
 * whatever fails here is done by them, and the request has succeeded.
 */
export async function settle({ database, log, project }: ProjectCall, endpointId?: string): Promise<void> {
  try {
    await settleDeliveries(database.pool, { projectId: project.id, endpointId });
  } catch (error) {
    log.warn(
      { error, project_id: project.id, endpoint_id: endpointId },
      'Waiting deliveries could not be changed now; an agent does it soon.',
    );
  }
}
