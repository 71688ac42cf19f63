import { GatewayError } from '@gateway/core/errors';
import type { Answer } from '../http/response.js';
import type { ProjectCall, Route } from './route.js';

/** The route that shows what this route edits or shows: that of the same path, when it has a time of its last change and can be edited. */
export function editableAt({ method, path, reach }: Route, routes: readonly Route[]): Route | undefined {
  const same = routes.filter((it) => it.path === path && it.reach === reach);
  const isEdited = same.some((it) => it.method === 'put') && method !== 'post';
  const shown = same.find((it) => it.method === 'get');
  return isEdited && shown?.data?.['properties'] && 'updated_at' in shown.data['properties'] ? shown : undefined;
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-etag: the time of the last change, which whoever has the resource knows. Undefined for what has none. */
export function etagOf({ data }: Answer): string | undefined {
  const changedAt = (data as { readonly updated_at?: Date } | null)?.updated_at;
  return changedAt && `"${changedAt.toISOString()}"`;
}

/** One edit of a resource at a time, of those that have a condition: of two with the same tag the second must see what the first has changed. */
const editing = new Map<string, Promise<unknown>>();

/**
 * Runs an edit if the resource is still what `If-Match` says. Another server may change it between the look and the edit, within milliseconds.
 * @throws GatewayError `stale`
 */
export async function runIfMatch(shown: Route, call: ProjectCall, run: () => Promise<Answer>): Promise<Answer> {
  const wanted = call.headers['if-match']!.split(',').map((tag) => tag.trim());
  const place = [shown.path, ...Object.values(call.params)].join(' ');
  const before = editing.get(place);
  const edit = (async () => {
    await before?.catch(() => undefined);
    const current = etagOf(await shown.run({ ...call, body: undefined, query: {} }));
    if (!wanted.includes('*') && !wanted.includes(current ?? '')) throw new GatewayError('stale', { current: current ?? 'none' });
    return run();
  })();
  editing.set(place, edit);
  try {
    return await edit;
  } finally {
    if (editing.get(place) === edit) editing.delete(place);
  }
}
