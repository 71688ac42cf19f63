import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { byName } from '../../components/form/options.js';
import { projectId } from '../../router/project-path.js';
import { FilterSelect } from '../log/filter-bar.js';

export function SourceFilter() {
  const { data = [] } = useResource(`${projectId.value} sources to filter by`, async (signal) =>
    byName((await api().sources.list({ perPage: 100 }, { signal }).page()).content),
  );
  if (data.length === 0) return null;
  return <FilterSelect name="source" label="Source" options={[['', 'Any source'], ...data]} />;
}
