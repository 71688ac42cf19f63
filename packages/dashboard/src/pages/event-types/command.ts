import { root } from '../../router/location.js';
import { projectId } from '../../router/project-path.js';

/** A command that posts an event of a type with the reader's API key. */
export function command(eventType: string, data: unknown): string {
  const body = JSON.stringify({ event_type: eventType, data: data ?? {} });
  return `curl ${location.origin}${root}/api/v1/projects/${projectId.value ?? ''}/events \\
  -H "authorization: Bearer $GATEWAY_KEY" -H 'content-type: application/json' \\
  -d '${body.replaceAll("'", "'\\''")}'`;
}
