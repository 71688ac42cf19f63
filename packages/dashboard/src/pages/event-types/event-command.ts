import { projectId, root } from '../../router/location.js';

/** Uses the API key in `GATEWAY_KEY`. */
export function eventCommand(
  eventType: string,
  data: unknown,
  headers: Readonly<Record<string, string>> = {},
): string {
  const custom = Object.keys(headers).length > 0 ? { custom_headers: headers } : {};
  const body = JSON.stringify({ event_type: eventType, data: data ?? {}, ...custom });
  return `curl ${location.origin}${root}/api/v1/projects/${projectId.value ?? ''}/events \\
  -H "authorization: Bearer $GATEWAY_KEY" -H 'content-type: application/json' \\
  -d ${shellQuoted(body)}`;
}

export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
