import { api, type ReadOptions, useResource } from '../../api/index.js';
import { type Choices, FilterSelect } from '../../components/index.js';
import { param, projectId } from '../../router/location.js';

const MOST = 200;
const KEPT_MS = 30_000;

let known = { project: '', atMs: 0, names: new Map<string, string>() };

/**
 * By id: the newest endpoints and the wanted ones, excluding deleted endpoints. Cached for half a
 * minute.
 */
export async function endpointNames(
  wanted: readonly string[],
  options: ReadOptions,
): Promise<ReadonlyMap<string, string>> {
  const project = projectId.value ?? '';
  if (known.project !== project || Date.now() - known.atMs > KEPT_MS) {
    const { content } = await api().endpoints.list({ perPage: MOST }, options).page();
    const names = new Map(content.map(({ uid, name }) => [uid, name]));
    known = { project, atMs: Date.now(), names };
  }
  const { names } = known;
  const missing = [...new Set(wanted)].filter((id) => !names.has(id));
  const found = await Promise.allSettled(missing.map((id) => api().endpoints.get(id, options)));
  for (const it of found) if (it.status === 'fulfilled') names.set(it.value.uid, it.value.name);
  return names;
}

/** Sorted by name, always including the selected one. */
export function useEndpointChoice(chosen: string): Choices {
  const { data } = useResource(`endpoints to choose from with ${chosen}`, (options) =>
    endpointNames(chosen ? [chosen] : [], options),
  );
  return [...(data ?? [])].sort(([, one], [, other]) => one.localeCompare(other));
}

export function EndpointFilter() {
  const names = useEndpointChoice(param('endpoint'));
  const options: Choices = [['', 'Any endpoint'], ...names];
  return <FilterSelect name="endpoint" label="Endpoint" options={options} other="One endpoint" />;
}
