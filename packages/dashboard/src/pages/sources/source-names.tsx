import { api, useResource } from '../../api/index.js';
import { byName, type Choices, FilterSelect } from '../../components/index.js';

/** At most 100 sources, sorted by name. */
export function useSourceNames(): Choices {
  const { data = [] } = useResource('sources to filter by', async (options) =>
    byName((await api().sources.list({ perPage: 100 }, options).page()).content),
  );
  return data;
}

export function SourceFilter() {
  const names = useSourceNames();
  if (names.length === 0) return null;
  return <FilterSelect name="source" label="Source" options={[['', 'Any source'], ...names]} />;
}
