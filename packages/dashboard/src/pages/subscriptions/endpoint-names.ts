import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { projectId } from '../../router/location.js';

const MOST = 200;
const KEPT_MS = 30_000;

interface KnownNames {
  readonly project: string | undefined;
  readonly atMs: number;
  readonly names: Map<string, string>;
}

let known: KnownNames = { project: undefined, atMs: 0, names: new Map() };

/**
 * By id: the newest endpoints and the wanted ones, excluding deleted endpoints. Cached for half a
 * minute.
 */
export async function endpointNames(
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const project = projectId.value;
  if (known.project !== project || Date.now() - known.atMs > KEPT_MS) {
    const { content } = await api().endpoints.list({ perPage: MOST }, { signal }).page();
    known = {
      project,
      atMs: Date.now(),
      names: new Map(content.map(({ uid, name }) => [uid, name])),
    };
  }
  const { names } = known;
  const missing = [...new Set(wanted)].filter((id) => !names.has(id));
  const found = await Promise.allSettled(missing.map((id) => api().endpoints.get(id, { signal })));
  for (const it of found) if (it.status === 'fulfilled') names.set(it.value.uid, it.value.name);
  return names;
}

/** Sorted by name, always including the selected one. */
export function useEndpointChoice(
  chosen: string,
): readonly (readonly [uid: string, name: string])[] {
  const { data } = useResource(
    `${projectId.value} endpoints to choose from with ${chosen}`,
    (signal) => endpointNames(chosen ? [chosen] : [], signal),
  );
  return [...(data ?? [])].sort(([, one], [, other]) => one.localeCompare(other));
}
