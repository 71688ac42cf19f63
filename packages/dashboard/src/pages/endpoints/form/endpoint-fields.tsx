import type { ComponentChildren } from 'preact';
import type { Draft } from '../../../api/change.js';
import { fieldError, TextField } from '../../../components/field.js';
import { isPortal } from '../../../router/location.js';
import { AuthenticationFields } from './authentication-fields.js';
import { CertificateFields } from './certificate-fields.js';
import { DeliveryFields } from './delivery-fields.js';
import type { EndpointDraft } from './endpoint-draft.js';

/**
 * The fields of an endpoint, with the API's errors.
 *
 * @param props.children additional fields of a new endpoint; rarely used fields are then folded
 */
export function EndpointFields({
  draft,
  error,
  children,
}: {
  readonly draft: Draft<EndpointDraft>;
  readonly error: Error | undefined;
  readonly children?: ComponentChildren;
}) {
  const { values, set } = draft;
  const isNew = children !== undefined;
  const about = (field: string) => ({ error: fieldError(error, field) });
  const seldom = (
    <>
      <TextField
        label="Description"
        value={values.description}
        onChange={set('description')}
        {...about('description')}
      />
      <CertificateFields draft={draft} error={error} />
      {!isPortal.value && (
        <>
          <TextField
            label="Owner"
            hint="Events for an owner go to all endpoints with this id."
            value={values.owner}
            onChange={set('owner')}
            {...about('owner_id')}
          />
          <DeliveryFields draft={draft} error={error} />
        </>
      )}
    </>
  );
  return (
    <>
      <TextField
        label="Name"
        value={values.name}
        onChange={set('name')}
        isRequired
        hasFocus={isNew}
        {...about('name')}
      />
      <TextField
        label="URL"
        type="url"
        isMono
        isRequired
        placeholder="https://example.com/webhooks"
        value={values.url}
        onChange={set('url')}
        {...about('url')}
      />
      {children}
      <AuthenticationFields
        value={values.authentication}
        onChange={set('authentication')}
        error={error}
      />
      {isNew ? (
        <details class="more-fields">
          <summary>
            {isPortal.value
              ? 'Description and client certificate'
              : 'Description, owner, client certificate, timeout, retries and limits'}
          </summary>
          <div class="form">{seldom}</div>
        </details>
      ) : (
        seldom
      )}
    </>
  );
}
