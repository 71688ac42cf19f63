import type { SourcePlugin } from '@gateway/client';
import { type FormSchema, Loaded, Page, Panel, Select } from '../../components/index.js';
import { projectId, query, setQuery } from '../../router/location.js';
import { projects } from '../../session/session.js';
import { BrokerForm } from './broker-form.js';
import { HttpForm } from './http-form.js';
import { useSourceTypes } from './source-state.js';

const HTTP = 'http';

/** With the schema's title, such as `Kafka topic (kafka)`. */
function nameOf({ name, connection }: SourcePlugin): string {
  const { title } = connection as FormSchema;
  return title ? `${title} (${name})` : name;
}

function description({ connection }: SourcePlugin): string | undefined {
  return (connection as FormSchema).description;
}

export default function NewSource() {
  const types = useSourceTypes();
  const isOutgoing =
    projects.value?.find(({ uid }) => uid === projectId.value)?.type !== 'incoming';
  return (
    <Page title="New source" list="Sources">
      <Loaded resource={types}>
        {(known) => {
          const named = known.filter(({ kind }) => isOutgoing || kind === 'push');
          const asked = query.value.get('type') ?? named[0]?.name ?? HTTP;
          const type = named.find(({ name }) => name === asked);
          return (
            <Panel title={type ? nameOf(type) : 'Requests to a URL (http)'}>
              {type && description(type) && <p class="muted">{description(type)}</p>}
              <div class="form">
                <Select
                  label="Source type"
                  value={type?.name ?? HTTP}
                  options={[
                    ...named.map((it) => [it.name, nameOf(it)] as const),
                    [HTTP, 'Requests to a URL (http)'],
                  ]}
                  onChange={(chosen) => setQuery({ type: chosen }, { replace: true })}
                />
              </div>
              {type ? <BrokerForm key={type.name} type={type} /> : <HttpForm />}
            </Panel>
          );
        }}
      </Loaded>
    </Page>
  );
}
