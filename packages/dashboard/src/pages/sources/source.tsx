import type { Source } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Page } from '../../components/layout/page.js';
import { Panel } from '../../components/layout/panel.js';
import { query } from '../../router/location.js';
import type { PageProps } from '../../router/match.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { BrokerForm } from './broker-form.js';
import { HttpForm } from './http-form.js';
import { SourceActions } from './source-actions.js';
import { SourceStatus } from './source-status.js';
import { SourceTabs } from './source-tabs.js';
import { useStates } from './use-states.js';

export default function SourcePage({ params: { id = '' } }: PageProps) {
  const source = useResource(`${projectId.value} source ${id}`, (signal) =>
    api().sources.get(id, { signal }),
  );
  const states = useStates();
  const refresh = () => {
    source.refresh();
    states.refresh();
  };
  const isSettings = query.value.get('tab') === 'settings';
  return (
    <Page
      title={source.data?.name ?? 'Source'}
      above={<a href={projectHref('/sources')}>Sources</a>}
      actions={source.data && <SourceActions source={source.data} onChange={refresh} />}
    >
      <Loaded resource={source} lines={12}>
        {(data) => (
          <>
            <SourceTabs id={id} shown={isSettings ? 'settings' : 'status'} />
            {isSettings ? (
              <Settings key={data.updated_at} source={data} onSaved={refresh} />
            ) : (
              <SourceStatus source={data} state={states.data?.get(id)} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Settings({ source, onSaved }: { readonly source: Source; readonly onSaved: () => void }) {
  const type = source.pub_sub?.type;
  const types = useResource(
    type && `${projectId.value} source types`,
    async (signal) => (await api().sources.listTypes({ signal })).content,
  );
  if (type === undefined) {
    return (
      <Panel title="Settings">
        <HttpForm source={source} onSaved={onSaved} />
      </Panel>
    );
  }
  return (
    <Panel title="Connection">
      <Loaded resource={types}>
        {(known) => {
          const own = known.find(({ name }) => name === type);
          return own ? (
            <BrokerForm type={own} source={source} onSaved={onSaved} />
          ) : (
            <p>
              The plugin <code>{type}</code> is not active here, so the connection can neither be
              shown nor changed. An operator sees why under the plugins of the instance.
            </p>
          );
        }}
      </Loaded>
    </Panel>
  );
}
