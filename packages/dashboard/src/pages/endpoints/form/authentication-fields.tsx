import { fieldError, Select, TextField } from '../../../components/field.js';
import { AUTHENTICATIONS, type AuthenticationDraft } from './authentication-draft.js';

const SECRETS = {
  api_key: ['header_value', 'Header value'],
  basic: ['password', 'Password'],
  bearer: ['token', 'Token'],
  oauth2: ['client_secret', 'Client secret'],
} as const;

export function AuthenticationFields({
  value,
  onChange,
  error,
}: {
  readonly value: AuthenticationDraft;
  readonly onChange: (value: AuthenticationDraft) => void;
  readonly error: Error | undefined;
}) {
  const { type } = value;
  const field = (name: Exclude<keyof AuthenticationDraft, 'type' | 'stored'>, place: string) => ({
    value: value[name],
    onChange: (text: string) => onChange({ ...value, [name]: text }),
    error: fieldError(error, `authentication.${place}`),
  });
  const isStored = value.stored === type;
  return (
    <>
      <Select
        label="Authentication"
        hint="Sent beside the signature, which every request has."
        value={type}
        options={AUTHENTICATIONS}
        onChange={(chosen) =>
          onChange({ ...value, type: chosen as AuthenticationDraft['type'], secret: '' })
        }
      />
      {type === 'api_key' && (
        <TextField
          label="Header name"
          isMono
          isRequired
          {...field('headerName', 'api_key.header_name')}
        />
      )}
      {type === 'basic' && <TextField label="Username" {...field('username', 'basic.username')} />}
      {type === 'oauth2' && (
        <>
          <TextField label="Token URL" type="url" isRequired {...field('tokenUrl', 'oauth2.url')} />
          <TextField label="Client id" isRequired {...field('clientId', 'oauth2.client_id')} />
        </>
      )}
      {type !== 'none' && (
        <TextField
          label={SECRETS[type][1]}
          type="password"
          autocomplete="new-password"
          {...(isStored
            ? { hint: 'One is stored, and not shown. Leave this empty to keep it.' }
            : {})}
          {...field('secret', `${type}.${SECRETS[type][0]}`)}
          error={
            fieldError(error, `authentication.${type}.${SECRETS[type][0]}`) ??
            fieldError(error, `authentication.${type}`)
          }
        />
      )}
      {type === 'oauth2' && (
        <>
          <TextField
            label="Scope"
            hint="If the token server wants one."
            {...field('scope', 'oauth2.scope')}
          />
          <TextField
            label="Audience"
            hint="If the token server wants one."
            {...field('audience', 'oauth2.audience')}
          />
        </>
      )}
    </>
  );
}
