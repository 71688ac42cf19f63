import type { ChangedEndpoint, Endpoint } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { changed, useEdit } from '../../api/change.js';
import { Copyable, Facts, FullTime, Time } from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { Button, Panel } from '../../components/layout.js';
import { Conflict } from '../../components/conflict.js';
import { Form } from '../../components/form.js';
import { labelOf, type FormSchema, type Value } from '../../components/schema-form/schema.js';
import { count } from '../../format/number.js';
import { href, query, setQuery, isPortal, projectHref } from '../../router/location.js';
import { may, mayManage } from '../../session/session.js';
import { authenticationWords } from './form/authentication-fields.js';
import { endpointFields, EndpointFields, fieldsOf } from './form/endpoint-fields.js';
import { limitWords } from './form/rate-limit-fields.js';
import { retryWords } from './form/retry-fields.js';

export function Settings({
  endpoint,
  onChange,
}: {
  readonly endpoint: Endpoint;
  readonly onChange: () => void;
}) {
  const isEditing = query.value.has('edit') && mayManage();
  const begin = () => setQuery({ edit: '1' });
  const end = () => setQuery({ edit: undefined }, { replace: true });
  return (
    <Panel
      title="Settings"
      actions={
        mayManage() &&
        !isEditing && (
          <Button keys="e" onPress={begin}>
            Edit
          </Button>
        )
      }
    >
      {isEditing ? (
        <EditForm
          endpoint={endpoint}
          onEnd={end}
          onSaved={() => {
            end();
            onChange();
            toast('Saved.');
          }}
        />
      ) : (
        <Facts rows={factsOf(endpoint)} />
      )}
    </Panel>
  );
}

function EditForm({
  endpoint,
  onSaved,
  onEnd,
}: {
  readonly endpoint: Endpoint;
  readonly onSaved: () => void;
  readonly onEnd: () => void;
}) {
  const [value, setValue] = useState(valueOf(endpoint));
  const edit = useEdit<Endpoint, ChangedEndpoint>(endpoint, {
    write: (changes, options) => api().endpoints.update(endpoint.uid, changes, options),
    read: () => api().endpoints.get(endpoint.uid),
    onSaved,
  });
  const submit = () => edit.save(changed(fieldsOf(valueOf(edit.base)), fieldsOf(value)));
  return (
    <Form
      action={{ ...edit, run: submit }}
      verb="Save"
      actions={<Button onPress={onEnd}>Cancel</Button>}
    >
      <EndpointFields
        value={value}
        onChange={setValue}
        stored={valueOf(edit.base)}
        error={edit.error}
      />
      <Conflict
        what="endpoint"
        edit={edit}
        ignored={['circuit_breaker', 'secrets']}
        onTheirs={(theirs) => setValue(valueOf(theirs))}
      />
    </Form>
  );
}

/** The API fields, unchanged. */
function valueOf(endpoint: Endpoint): Value {
  return { ...endpoint };
}

/** For fields that the schema does not describe well enough. */
const WORDS: {
  readonly [Name in keyof Endpoint]?: (endpoint: Endpoint) => ComponentChildren;
} = {
  owner_id: ({ owner_id: owner }) => owner && <Owner id={owner} />,
  authentication: ({ authentication }) => authenticationWords(authentication),
  mtls_client_cert: ({ mtls_client_cert: certificate }) =>
    certificate && <CertificateEnd at={certificate.expires_at} />,
  strategy: ({ strategy }) => retryWords(strategy),
  rate_limit: limitWords,
  // Shown with the limit.
  rate_limit_duration: () => undefined,
};

function wordsOf(endpoint: Endpoint, name: keyof Endpoint, schema: FormSchema): ComponentChildren {
  const words = WORDS[name];
  if (words) return words(endpoint);
  const value = endpoint[name] as string | number | null;
  if (value === null || value === '') return undefined;
  if (typeof value === 'number') return count(value);
  return schema.format === 'uri' ? <span class="mono">{value}</span> : value;
}

function factsOf(endpoint: Endpoint): (readonly [string, ComponentChildren])[] {
  return [
    ...endpointFields().flatMap(([name, schema]) =>
      name === 'name' || !(name in endpoint)
        ? []
        : [[labelOf(name, schema), wordsOf(endpoint, name, schema) ?? schema['x-unset']] as const],
    ),
    ['Endpoint ID', <Copyable text={endpoint.uid} what="endpoint ID" />],
    ['Created', <FullTime at={endpoint.created_at} />],
    [
      'Last change',
      <>
        <FullTime at={endpoint.updated_at} />{' '}
        {may('admin') && <a href={href(`/audit?search=${endpoint.uid}`)}>History</a>}
      </>,
    ],
  ];
}

function Owner({ id }: { readonly id: string }) {
  return (
    <>
      {id}{' '}
      {!isPortal.value && may('member') && (
        <a href={projectHref(`/portal-links?search=${encodeURIComponent(id)}&new=1`)}>
          Create portal link
        </a>
      )}
    </>
  );
}

function CertificateEnd({ at }: { readonly at: string }) {
  return (
    <>
      valid until <Time at={at} />
      {new Date(at) < new Date() && <strong> (expired; the endpoint rejects it)</strong>}
    </>
  );
}
