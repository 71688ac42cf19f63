import type { Verifier } from '@gateway/client';
import { SchemaForm } from '../../components/schema-form/schema-form.js';
import { submitted, type Schema, type Value } from '../../components/schema-form/schema.js';
import { Select } from '../../components/form/field.js';

const secret: Schema = { type: 'string', 'x-secret': true };
const HANDSHAKES: readonly NonNullable<Verifier['handshake']>['type'][] = [
  ...(['hub_challenge', 'websub', 'slack', 'monday', 'microsoft_graph', 'event_grid'] as const),
  ...(['dropbox', 'okta', 'zoom', 'x', 'reachable'] as const),
];
const ofProvider: Schema = {
  required: ['secret'],
  properties: {
    secret: { ...secret, title: 'Secret', description: 'What the provider signs with.' },
  },
};

/** Kinds of request verification, each with its label and fields. */
const KINDS: Readonly<Record<Verifier['type'], readonly [label: string, fields: Schema]>> = {
  noop: ['None: the URL is enough', {}],
  basic_auth: [
    'Basic authentication',
    group('basic_auth', {
      username: { type: 'string', title: 'User name' },
      password: { ...secret, title: 'Password' },
    }),
  ],
  api_key: [
    'API key in a header',
    group('api_key', {
      header_name: { type: 'string', title: 'Header' },
      header_value: { ...secret, title: 'Key' },
    }),
  ],
  hmac: [
    'HMAC signature',
    group('hmac', {
      header: { type: 'string', title: 'Header' },
      hash: { title: 'Hash', enum: ['SHA256', 'SHA512'] },
      encoding: { title: 'Encoding', enum: ['hex', 'base64'] },
      secret: { ...secret, title: 'Secret' },
    }),
  ],
  github: ['GitHub', ofProvider],
  shopify: ['Shopify', ofProvider],
  stripe: ['Stripe', ofProvider],
  slack: ['Slack', ofProvider],
  zoom: ['Zoom', ofProvider],
  standard_webhooks: ['Standard Webhooks', ofProvider],
};

const handshake: Schema = {
  type: 'object',
  title: 'Handshake',
  properties: {
    type: {
      title: 'Handshake',
      enum: HANDSHAKES,
      description: 'The request that the provider sends once to check the URL.',
    },
    token: {
      ...secret,
      title: 'Verify token',
      description: 'The expected value of `hub.verify_token`.',
    },
  },
};

function group(name: string, properties: Readonly<Record<string, Schema>>): Schema {
  return {
    properties: {
      [name]: {
        type: 'object',
        title: 'Verification',
        properties,
        required: Object.keys(properties),
      },
    },
  };
}

/** Chooses how requests are verified. A stored secret is kept until the kind changes. */
export function VerifierFields({
  verifier,
  stored,
  onChange,
  error,
}: {
  readonly verifier: Verifier;
  readonly stored: Verifier | undefined;
  readonly onChange: (verifier: Verifier) => void;
  readonly error: Error | undefined;
}) {
  const { type, ...fields } = verifier;
  const [, own] = KINDS[type];
  const schema = { ...own, properties: { ...own.properties, handshake } };
  const before = (stored?.type === type ? stored : {}) as Value;
  return (
    <>
      <Select
        label="Verification"
        hint="How a request proves who sends it."
        value={type}
        options={Object.entries(KINDS).map(([kind, [label]]) => [kind, label] as const)}
        onChange={(chosen) => {
          const kind = chosen as Verifier['type'];
          onChange(stored?.type === kind ? stored : { type: kind });
        }}
      />
      <SchemaForm
        schema={schema}
        value={fields}
        onChange={(value) => onChange({ ...submitted(schema, value, before), type })}
        stored={before}
        error={error}
        path="verifier"
      />
    </>
  );
}
