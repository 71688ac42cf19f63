import type { ChangedEndpoint, Endpoint } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { changed, useDraft, useEdit } from '../../api/change.js';
import { api } from '../../api/client.js';
import { Conflict } from '../../components/conflict.js';
import { Copyable, Facts, FullTime, Time } from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { Form } from '../../components/form.js';
import { Button, Panel } from '../../components/layout.js';
import { count } from '../../format/number.js';
import { href, isPortal, projectHref, query, setQuery } from '../../router/location.js';
import { may, mayManage } from '../../session/session.js';
import { AUTHENTICATIONS } from './form/authentication-draft.js';
import { draftOf, fieldsOf } from './form/endpoint-draft.js';
import { EndpointFields } from './form/endpoint-fields.js';

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
  const draft = useDraft(draftOf(endpoint));
  const edit = useEdit<Endpoint, ChangedEndpoint>(endpoint, {
    write: (changes, options) => api().endpoints.update(endpoint.uid, changes, options),
    read: () => api().endpoints.get(endpoint.uid),
    onSaved,
  });
  const submit = () => edit.save(changed(fieldsOf(draftOf(edit.base)), fieldsOf(draft.values)));
  return (
    <Form
      action={{ ...edit, run: submit }}
      verb="Save"
      actions={<Button onPress={onEnd}>Cancel</Button>}
    >
      <EndpointFields draft={draft} error={edit.error} />
      <Conflict
        what="endpoint"
        edit={edit}
        ignored={['circuit_breaker', 'secrets']}
        onTheirs={(theirs) => draft.replace(draftOf(theirs))}
      />
    </Form>
  );
}

function factsOf(endpoint: Endpoint): (readonly [string, ComponentChildren])[] {
  const {
    description,
    owner_id: owner,
    authentication,
    mtls_client_cert: certificate,
    concurrency,
  } = endpoint;
  return [
    ['URL', <span class="mono">{endpoint.url}</span>],
    ['Description', description || null],
    ['Owner', owner && <Owner id={owner} />],
    ['Authentication', authenticationWords(authentication)],
    ['Client certificate', certificate && <CertificateEnd at={certificate.expires_at} />],
    ['Timeout', `${endpoint.http_timeout} s`],
    ['Retries', retryWords(endpoint)],
    ['Rate limit', limitWords(endpoint)],
    [
      'Concurrency',
      concurrency === null
        ? 'as the instance'
        : `${count(concurrency)} requests at a time, per agent`,
    ],
    ['Endpoint id', <Copyable text={endpoint.uid} what="endpoint id" />],
    ['Created', <FullTime at={endpoint.created_at} />],
    [
      'Last change',
      <>
        <FullTime at={endpoint.updated_at} />{' '}
        {may('admin') && <a href={href(`/audit?search=${endpoint.uid}`)}>Who changed what</a>}
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
          Portal link for {id}
        </a>
      )}
    </>
  );
}

function CertificateEnd({ at }: { readonly at: string }) {
  return (
    <>
      valid until <Time at={at} />
      {new Date(at) < new Date() && <strong>: it has expired, and the endpoint rejects it</strong>}
    </>
  );
}

function authenticationWords(authentication: Endpoint['authentication']): string {
  if (!authentication) return 'the signature alone';
  const { type, api_key: header, basic, oauth2 } = authentication;
  const name = AUTHENTICATIONS.find(([value]) => value === type)?.[1].toLowerCase() ?? type;
  return {
    api_key: `header ${header?.header_name}`,
    basic: `user ${basic?.username}`,
    bearer: name,
    oauth2: `OAuth 2.0 by ${oauth2?.url}`,
  }[type];
}

function retryWords({ strategy }: Endpoint): string {
  if (!strategy) return 'as the project';
  const { type, retry_count: n, duration, max_seconds: max } = strategy;
  if (n === 0) return 'none';
  const waits =
    type === 'linear'
      ? `every ${count(duration)} s`
      : `after ${count(duration)} s, then twice as long each time${max ? `, ${count(max)} s at most` : ''}`;
  return `${count(n)}, ${waits}`;
}

function limitWords({ rate_limit: limit, rate_limit_duration: seconds }: Endpoint): string {
  if (limit === null) return 'as the project';
  if (limit === 0) return 'none';
  return `${count(limit)} requests in ${seconds === null || seconds === 1 ? 'a second' : `${count(seconds)} s`}`;
}
