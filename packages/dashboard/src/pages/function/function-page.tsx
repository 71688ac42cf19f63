import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Page } from '../../components/layout/page.js';
import type { PageProps } from '../../router/match.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { SourceTabs } from '../sources/source-tabs.js';
import { FunctionEditor } from './function-editor.js';

export default function FunctionPage({ params: { id = '' } }: PageProps) {
  const source = useResource(`${projectId.value} source ${id}`, (signal) => api().sources.get(id, { signal }));
  return (
    <Page title={source.data?.name ?? 'Source'} above={<a href={projectHref('/sources')}>Sources</a>}>
      <SourceTabs id={id} shown="function" />
      <Loaded resource={source} lines={12}>
        {(data) => <FunctionEditor source={data} onSaved={source.refresh} />}
      </Loaded>
    </Page>
  );
}
