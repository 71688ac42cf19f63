import { type ChangedEndpoint, type CreateEndpoint, forms } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import {
  errorAt,
  fieldError,
  type FormSchema,
  labelOf,
  MASK,
  SchemaForm,
  TextArea,
  type Value,
  type Widget,
  written,
} from '../../../components/index.js';
import { isPortal } from '../../../router/location.js';
import { AuthenticationFields } from './authentication-fields.js';
import { BatchFields } from './batch-fields.js';
import { RateLimitFields } from './rate-limit-fields.js';
import { RetryFields } from './retry-fields.js';

const { CreateEndpoint: form } = forms;

/** In form order, without fields that the user may not set. */
export function endpointFields(): [name: keyof ChangedEndpoint, schema: FormSchema][] {
  const fields = Object.entries(form.properties) as [keyof ChangedEndpoint, FormSchema][];
  return fields.filter(([, schema]) => !isPortal.value || schema['x-set-by'] !== 'project');
}

export function fieldsOf(value: Value): Omit<CreateEndpoint, 'secret'> & ChangedEndpoint {
  const properties = Object.fromEntries(endpointFields());
  return written<CreateEndpoint>({ properties }, value);
}

/**
 * @param props.stored the stored endpoint; without it, the endpoint is new, and rarely used fields
 *   are collapsed
 * @param props.children additional fields of a new endpoint
 */
export function EndpointFields({
  value,
  onChange,
  stored,
  error,
  children,
}: {
  value: Value;
  onChange: (value: Value) => void;
  stored?: Value;
  error: Error | undefined;
  children?: ComponentChildren;
}) {
  const fields = endpointFields().filter(([name]) => !stored || name in stored);
  const [first, more] = [fields.slice(0, 2), fields.slice(2)];
  const isFrequent = ([name]: (typeof fields)[number]) =>
    stored !== undefined || ['secret', 'authentication'].includes(name);
  const seldom = more.filter((field) => !isFrequent(field));
  const part = (entries: typeof fields, hasFocus = false) => (
    <SchemaForm
      schema={{ properties: Object.fromEntries(entries), required: form.required }}
      path=""
      widgets={WIDGETS}
      {...{ value, onChange, error, hasFocus, ...(stored ? { stored } : {}) }}
    />
  );
  return (
    <>
      {part(first, stored === undefined)}
      {children}
      {part(more.filter(isFrequent))}
      {seldom.length > 0 && (
        <details class="more-fields">
          <summary>{summaryOf(seldom)}</summary>
          <div class="form">{part(seldom)}</div>
        </details>
      )}
    </>
  );
}

const list = new Intl.ListFormat('en-GB');

/** The collapsed fields, such as `Description, owner and client certificate`. */
function summaryOf(fields: readonly (readonly [string, FormSchema])[]): string {
  const [first = '', ...others] = fields.flatMap(([name, schema]) =>
    name === 'rate_limit_duration' ? [] : [labelOf(name, schema)],
  );
  return list.format([first, ...others.map((label) => label.toLowerCase())]);
}

/** The key's field appears once there is a certificate. An empty field keeps a stored key. */
const CertificateFields: Widget = ({ schema, value, onChange, stored, error }) => {
  const { client_cert: cert = '', client_key: key } = (value['mtls_client_cert'] ?? {}) as Value;
  const isStored = Boolean(stored?.['mtls_client_cert']);
  const change = (fields: Value) => onChange({ ...value, mtls_client_cert: fields });
  return (
    <>
      <TextArea
        label="Client certificate"
        isMono
        hint={schema.description}
        value={cert as string}
        onChange={(text) =>
          text.trim() === ''
            ? onChange({ ...value, mtls_client_cert: null })
            : change({ client_cert: text, client_key: key ?? (isStored ? MASK : undefined) })
        }
        error={
          fieldError(error, 'mtls_client_cert.client_cert') ?? fieldError(error, 'mtls_client_cert')
        }
      />
      {cert !== '' && (
        <TextArea
          label="Private key"
          isMono
          hint={
            isStored ? 'A key is stored. Leave empty to keep it.' : 'PEM, without a passphrase.'
          }
          value={key === MASK ? '' : ((key ?? '') as string)}
          onChange={(text) =>
            change({
              client_cert: cert,
              client_key: text.trim() !== '' ? text : isStored ? MASK : undefined,
            })
          }
          error={fieldError(error, 'mtls_client_cert.client_key')}
        />
      )}
    </>
  );
};

interface Header {
  readonly name: string;
  readonly value?: string;
}

/** One header per line. The mask as a value keeps the stored one. */
const HeaderFields: Widget = ({ schema, value, onChange, error }) => {
  const lines = (headers: unknown) =>
    ((headers ?? []) as Header[]).map(({ name, value: it }) => `${name}: ${it ?? ''}`).join('\n');
  const [text, setText] = useState(lines(value['headers']));
  return (
    <TextArea
      label="Headers"
      isMono
      hint={`${schema.description} One per line, as name: value; ${MASK} keeps the stored value.`}
      value={text}
      onChange={(typed) => {
        setText(typed);
        onChange({ ...value, headers: headersIn(typed) });
      }}
      error={errorAt(error, 'headers')}
    />
  );
};

function headersIn(text: string): Header[] | null {
  const headers = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', ...rest] = line.split(':');
      return { name: name.trim(), value: rest.join(':').trim() };
    });
  return headers.length > 0 ? headers : null;
}

/** These inputs cannot be generated from the schema. */
const WIDGETS: Readonly<Record<string, Widget>> = {
  authentication: AuthenticationFields,
  mtls_client_cert: CertificateFields,
  headers: HeaderFields,
  strategy: RetryFields,
  rate_limit: RateLimitFields,
  rate_limit_duration: () => null,
  batch: BatchFields,
};
