import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { param } from '../../router/location.js';
import { projectId } from '../../router/project-path.js';
import { FilterSelect } from '../log/filter-bar.js';

const MOST = 100;

/** Chooses an endpoint. A project may have more than fit into a list: one that a link names is in it too. */
export function EndpointFilter() {
  const chosen = param('endpoint');
  const { data } = useResource(`${projectId.value} endpoints to filter by`, async (signal) => {
    const { content } = await api().endpoints.list({ perPage: MOST }, { signal }).page();
    return content.map(({ uid, name }) => [uid, name] as const).sort(([, a], [, b]) => a.localeCompare(b));
  });
  const known = data ?? [];
  const named = useResource(
    chosen && data && !known.some(([uid]) => uid === chosen) ? `${projectId.value} endpoint ${chosen}` : undefined,
    (signal) => api().endpoints.get(chosen, { signal }),
  );
  const other = chosen && !known.some(([uid]) => uid === chosen) ? [[chosen, named.data?.name ?? 'One endpoint'] as const] : [];
  return <FilterSelect name="endpoint" label="Endpoint" options={[['', 'Any endpoint'], ...other, ...known]} />;
}
