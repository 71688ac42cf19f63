import type { Draft } from '../../../api/change.js';
import { fieldError, TextArea } from '../../../components/field.js';
import type { EndpointDraft } from './endpoint-draft.js';

export function CertificateFields({
  draft: { values, set },
  error,
}: {
  readonly draft: Draft<EndpointDraft>;
  readonly error: Error | undefined;
}) {
  return (
    <>
      <TextArea
        label="Client certificate"
        isMono
        hint="In PEM, with those that lead to its authority; for endpoints that require mutual TLS."
        value={values.certificate}
        onChange={set('certificate')}
        error={
          fieldError(error, 'mtls_client_cert.client_cert') ?? fieldError(error, 'mtls_client_cert')
        }
      />
      {values.certificate.trim() !== '' && (
        <TextArea
          label="Private key"
          isMono
          hint={
            values.hasKey
              ? 'One is stored, and not shown. Leave this empty to keep it.'
              : 'Of the certificate, in PEM without a passphrase.'
          }
          value={values.certificateKey}
          onChange={set('certificateKey')}
          error={fieldError(error, 'mtls_client_cert.client_key')}
        />
      )}
    </>
  );
}
