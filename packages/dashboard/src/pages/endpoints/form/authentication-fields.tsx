import type { Endpoint } from '@gateway/client';
import {
  fieldError,
  fieldsOf,
  type FormSchema,
  kindOf,
  SchemaField,
  Select,
  type Value,
  type Widget,
} from '../../../components/index.js';

const NAMES = {
  api_key: 'Header',
  basic: 'User name and password',
  bearer: 'Bearer token',
  oauth2: 'OAuth 2.0 client credentials',
  secret_url: 'Secret URL',
} as const;

type Authentication = Endpoint['authentication'];

/** A stored secret is kept unless the kind changes. */
export const AuthenticationFields: Widget = ({ schema, value, onChange, stored, error }) => {
  const authentication = (value['authentication'] ?? {}) as Value;
  const before = (stored?.['authentication'] ?? {}) as Value;
  const type = (authentication['type'] ?? '') as keyof typeof NAMES | '';
  const own = (schema.properties?.[type] ?? {}) as FormSchema;
  const fields = (authentication[type] ?? {}) as Value;
  const storedFields = (before['type'] === type ? before[type] : {}) as Value;
  const change = (next: Value | null) => onChange({ ...value, authentication: next });
  const place = `authentication.${type}`;
  return (
    <>
      <Select
        label="Authentication"
        hint={schema.description}
        value={type}
        options={[['', 'None'], ...Object.entries(NAMES)]}
        onChange={(chosen) =>
          change(
            chosen === ''
              ? null
              : chosen === before['type']
                ? before
                : { type: chosen, [chosen]: {} },
          )
        }
      />
      {fieldsOf(own, fields).map(({ name, schema: field, isRequired }) => (
        <SchemaField
          key={`${type} ${name}`}
          name={name}
          schema={field}
          value={fields[name]}
          onChange={(next) => change({ type, [type]: { ...fields, [name]: next } })}
          isRequired={isRequired}
          stored={storedFields[name]}
          error={
            fieldError(error, `${place}.${name}`) ??
            (kindOf(field) === 'secret' ? fieldError(error, place) : undefined)
          }
        />
      ))}
    </>
  );
};

/** Undefined if only the signature authenticates requests. */
export function authenticationWords(authentication: Authentication): string | undefined {
  if (!authentication) return undefined;
  const { type, api_key: header, basic, oauth2 } = authentication;
  return {
    api_key: `header ${header?.header_name}`,
    basic: `user ${basic?.username}`,
    bearer: NAMES.bearer.toLowerCase(),
    oauth2: `OAuth 2.0, token from ${oauth2?.url}`,
    secret_url: NAMES.secret_url.toLowerCase(),
  }[type];
}
