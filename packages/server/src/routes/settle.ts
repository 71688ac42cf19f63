import { settleDeliveries } from '@gateway/store/deliveries';
import { type ProjectCall } from '../api/vocabulary.js';

/**
 * Applies the committed state of an endpoint or a deleted project to its waiting deliveries. A
 * failure does not fail the request: agents also look for deliveries that do not match that state.
 */
export async function settle(
  { planes, log, project }: ProjectCall,
  endpointId?: string,
): Promise<void> {
  try {
    await settleDeliveries(planes, { projectId: project.id, endpointId });
  } catch (error) {
    log.warn(
      { error, project_id: project.id, endpoint_id: endpointId },
      'Could not update waiting deliveries; an agent will soon.',
    );
  }
}
