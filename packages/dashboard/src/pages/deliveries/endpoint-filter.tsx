import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { byName } from '../../components/form/options.js';
import { param } from '../../router/location.js';
import { projectId } from '../../router/project-path.js';
import { FilterSelect } from '../log/filter-bar.js';

const MOST = 100;

/** Chooses an endpoint. The list is limited, so an endpoint that a link names is added to it. */
export function EndpointFilter() {
  const chosen = param('endpoint');
  const { data: known } = useResource(`${projectId.value} endpoints to filter by`, async (signal) =>
    byName((await api().endpoints.list({ perPage: MOST }, { signal }).page()).content),
  );
  const isOther = chosen !== '' && known && !known.some(([uid]) => uid === chosen);
  const named = useResource(
    isOther ? `${projectId.value} endpoint ${chosen}` : undefined,
    (signal) => api().endpoints.get(chosen, { signal }),
  );
  const options = [['', 'Any endpoint'] as const, ...(known ?? [])];
  return (
    <FilterSelect
      name="endpoint"
      label="Endpoint"
      options={options}
      other={named.data?.name ?? 'One endpoint'}
    />
  );
}
