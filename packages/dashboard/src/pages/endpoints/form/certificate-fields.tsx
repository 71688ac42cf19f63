import { fieldError, MASK, TextArea, type Value, type Widget } from '../../../components/index.js';

/** The key's field appears once there is a certificate. An empty field keeps a stored key. */
export const CertificateFields: Widget = ({ schema, value, onChange, stored, error }) => {
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
