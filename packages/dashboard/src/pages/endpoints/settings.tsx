import type { ChangedEndpoint, Endpoint } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { api } from '../../api/index.js';
import {
  Button,
  changeFacts,
  Copyable,
  Facts,
  Form,
  type FormSchema,
  labelOf,
  Link,
  Panel,
  Time,
  toast,
  useEdit,
  type Value,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { isPortal, query, setQuery } from '../../router/location.js';
import { may, mayManage } from '../../session/session.js';
import { authenticationWords } from './form/authentication-fields.js';
import { batchWords } from './form/batch-fields.js';
import { endpointFields, EndpointFields, fieldsOf } from './form/endpoint-fields.js';
import { limitWords } from './form/rate-limit-fields.js';
import { retryWords } from './form/retry-fields.js';

export function Settings({ endpoint }: { endpoint: Endpoint }) {
  const isEditing = query.value.has('edit') && mayManage();
  const end = () => setQuery({ edit: undefined }, { replace: true });
  return (
    <Panel
      title="Settings"
      actions={
        mayManage() &&
        !isEditing && (
          <Button keys="e" onPress={() => setQuery({ edit: '1' })}>
            Edit
          </Button>
        )
      }
    >
      {isEditing ? (
        <EditForm endpoint={endpoint} onEnd={end} />
      ) : (
        <Facts rows={factsOf(endpoint)} />
      )}
    </Panel>
  );
}

function EditForm({ endpoint, onEnd }: { endpoint: Endpoint; onEnd: () => void }) {
  const edit = useEdit<Endpoint, Value, ChangedEndpoint>(endpoint, {
    what: 'endpoint',
    rows: api().endpoints,
    draftOf: (it) => ({ ...it }),
    fieldsOf,
    ignored: ['circuit_breaker', 'secrets'],
    onSaved: () => {
      onEnd();
      toast('Saved.');
    },
  });
  return (
    <Form action={edit} verb="Save" actions={<Button onPress={onEnd}>Cancel</Button>}>
      <EndpointFields
        value={edit.values}
        onChange={edit.replace}
        stored={{ ...edit.base }}
        error={edit.error}
      />
    </Form>
  );
}

/** For fields that the schema does not describe well enough. */
const WORDS: {
  readonly [Name in keyof Endpoint]?: (endpoint: Endpoint) => ComponentChildren;
} = {
  owner_id: ({ owner_id: owner }) => owner && <Owner id={owner} />,
  authentication: ({ authentication }) => authenticationWords(authentication),
  mtls_client_cert: ({ mtls_client_cert: certificate }) =>
    certificate && <CertificateEnd at={certificate.expires_at} />,
  signatures: ({ signatures }) => signatures?.join(', '),
  headers: ({ headers }) => headers?.map(({ name }) => name).join(', '),
  strategy: ({ strategy }) => retryWords(strategy),
  rate_limit: limitWords,
  // Shown with the limit.
  rate_limit_duration: () => undefined,
  batch: batchWords,
};

function wordsOf(endpoint: Endpoint, name: keyof Endpoint, schema: FormSchema): ComponentChildren {
  const words = WORDS[name];
  if (words) return words(endpoint);
  const value = endpoint[name] as string | number | null;
  if (value === null || value === '') return undefined;
  if (typeof value === 'number') return count(value);
  return schema.format === 'uri' ? <span class="mono">{value}</span> : value;
}

function factsOf(endpoint: Endpoint): Readonly<Record<string, ComponentChildren>> {
  const fields = endpointFields().flatMap(([name, schema]) =>
    name === 'name' || !(name in endpoint)
      ? []
      : [[labelOf(name, schema), wordsOf(endpoint, name, schema) ?? schema['x-unset']] as const],
  );
  return {
    ...Object.fromEntries(fields),
    'Endpoint ID': <Copyable text={endpoint.uid} what="endpoint ID" />,
    ...changeFacts(endpoint),
  };
}

function Owner({ id }: { id: string }) {
  return (
    <>
      {id}{' '}
      {!isPortal.value && may('member') && (
        <Link to={`/portal-links?search=${encodeURIComponent(id)}&new=1`}>Create portal link</Link>
      )}
    </>
  );
}

function CertificateEnd({ at }: { at: string }) {
  return (
    <>
      valid until <Time at={at} />
      {new Date(at) < new Date() && <strong> (expired; the endpoint rejects it)</strong>}
    </>
  );
}
