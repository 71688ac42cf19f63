import type { Endpoint } from '@gateway/client';
import { MASK } from '../../../components/schema-form/schema.js';

type Authentication = NonNullable<Endpoint['authentication']>;

export const AUTHENTICATIONS = [
  ['none', 'None'],
  ['api_key', 'Header'],
  ['basic', 'Username and password'],
  ['bearer', 'Bearer token'],
  ['oauth2', 'OAuth 2.0 client credentials'],
] as const;

/** The form's authentication. Secrets are empty: the API does not return stored ones. */
export interface AuthenticationDraft {
  readonly type: (typeof AUTHENTICATIONS)[number][0];
  /** The type with a stored secret, which an empty field keeps. */
  readonly stored: Authentication['type'] | undefined;
  readonly secret: string;
  readonly headerName: string;
  readonly username: string;
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly scope: string;
  readonly audience: string;
}

export function draftOfAuthentication(
  authentication: Endpoint['authentication'],
): AuthenticationDraft {
  const { type, api_key: header, basic, oauth2 } = authentication ?? {};
  return {
    type: type ?? 'none',
    stored: type,
    secret: '',
    headerName: header?.header_name ?? '',
    username: basic?.username ?? '',
    tokenUrl: oauth2?.url ?? '',
    clientId: oauth2?.client_id ?? '',
    scope: oauth2?.scope ?? '',
    audience: oauth2?.audience ?? '',
  };
}

/** Converts a draft for the API. */
export function authenticationOf(draft: AuthenticationDraft): Authentication | null {
  const { type } = draft;
  const secret = draft.secret === '' && draft.stored === type ? MASK : draft.secret;
  const optional = (name: 'scope' | 'audience') =>
    draft[name].trim() === '' ? {} : { [name]: draft[name].trim() };
  switch (type) {
    case 'none':
      return null;
    case 'api_key':
      return { type, api_key: { header_name: draft.headerName.trim(), header_value: secret } };
    case 'basic':
      return { type, basic: { username: draft.username, password: secret } };
    case 'bearer':
      return { type, bearer: { token: secret } };
    case 'oauth2': {
      const { tokenUrl, clientId } = draft;
      const oauth2 = {
        url: tokenUrl.trim(),
        client_id: clientId.trim(),
        client_secret: secret,
        ...optional('scope'),
        ...optional('audience'),
      };
      return { type, oauth2 };
    }
  }
}
