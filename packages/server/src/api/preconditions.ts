import { GatewayError } from '@gateway/core/errors';
import type { ApiAnswer } from '../http/response.js';
import { withoutInput, type AnyCall, type Route } from './route.js';

/** The GET route with the same path if its resource can be edited and has an `updated_at`. */
export function editableAt(
  { method, path, reach }: Route,
  routes: readonly Route[],
): Route | undefined {
  const same = routes.filter((it) => it.path === path && it.reach === reach);
  const isEdited = same.some((it) => it.method === 'put') && method !== 'post';
  const shown = same.find((it) => it.method === 'get');
  return isEdited && shown?.data?.['properties'] && 'updated_at' in shown.data['properties']
    ? shown
    : undefined;
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-etag */
export function etagOf({ data }: ApiAnswer): string | undefined {
  const changedAt = (data as { readonly updated_at?: Date } | null)?.updated_at;
  return changedAt && `"${changedAt.toISOString()}"`;
}

/** Edits of a resource run serially, so that the second of two edits with the same ETag fails. */
const editing = new Map<string, Promise<unknown>>();

/**
 * Another server can change the resource in the milliseconds between the check and the edit.
 * @throws GatewayError `stale` if it no longer matches `If-Match`
 */
export async function runIfMatch(
  shown: Route,
  call: AnyCall,
  run: () => Promise<ApiAnswer>,
): Promise<ApiAnswer> {
  const wanted = call.headers['if-match']!.split(',').map((tag) => tag.trim());
  const place = [shown.path, ...Object.values(call.params)].join(' ');
  const before = editing.get(place);
  const edit = (async () => {
    await before?.catch(() => undefined);
    const current = etagOf(await shown.run(withoutInput(call)));
    if (!wanted.includes('*') && !wanted.includes(current ?? ''))
      throw new GatewayError('stale', { current: current ?? 'none' });
    return run();
  })();
  editing.set(place, edit);
  try {
    return await edit;
  } finally {
    if (editing.get(place) === edit) editing.delete(place);
  }
}
