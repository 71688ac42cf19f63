import type { Source, Verifier } from '@gateway/client';
import { api, ifMatch } from '../../api/index.js';
import {
  Form,
  type FormSchema,
  SchemaForm,
  Select,
  submitted,
  TextArea,
  TextField,
  toast,
  useForm,
  type Value,
} from '../../components/index.js';
import { may } from '../../session/session.js';
import { KeepMessages, linesOf, open } from './broker-form.js';

const UNVERIFIED: Verifier = { type: 'noop' };

/**
 * The form that creates or changes an HTTP source. Empty fields of a new source get the provider's
 * defaults.
 */
export function HttpForm({
  source,
  onCreated = open,
}: {
  source?: Source;
  onCreated?: (created: Source) => void;
}) {
  const initial = {
    name: source?.name ?? '',
    keepMessages: source?.keep_messages ?? false,
    verifier: source?.verifier ?? UNVERIFIED,
    format: source?.format ?? '',
    type: source?.event_type ?? '',
    place: source?.event_type_location ?? '',
    keys: (source?.idempotency_keys ?? []).join('\n'),
    headers: (source?.forward_headers ?? []).join('\n'),
    answer: source?.custom_response?.body ?? '',
    answerType: source?.custom_response?.content_type ?? 'application/json',
  };
  const form = useForm(initial, async (values) => {
    const { name, keepMessages, verifier, format, type, place, keys, headers, answer, answerType } =
      values;
    const whenGiven = (field: string, text: string, value: unknown, empty: unknown) =>
      text !== '' ? { [field]: value } : source ? { [field]: empty } : {};
    const response = { body: answer, content_type: answerType };
    const body = {
      name,
      keep_messages: keepMessages,
      verifier,
      ...whenGiven('format', format, format, null),
      ...whenGiven('event_type', type, type, null),
      ...whenGiven('event_type_location', place, place, null),
      ...whenGiven('idempotency_keys', keys, linesOf(keys), []),
      ...whenGiven('forward_headers', headers, linesOf(headers), []),
      ...whenGiven('custom_response', answer, response, null),
    };
    if (source) {
      await api().sources.update(source.uid, body, {}, ifMatch(source));
      toast('Source saved.');
    } else {
      const created = await api().sources.create({ ...body, type: 'http' });
      toast('Source created. Copy its URL.');
      onCreated(created);
    }
  });
  const { values, set, text, error } = form;
  const byProvider = source ? '' : ' Leave empty for the default of the provider.';
  return (
    <Form
      action={form}
      verb={may('member') ? (source ? 'Save' : 'Create source') : undefined}
      marksRequired
    >
      <TextField label="Name" isRequired {...text('name')} hasFocus={!source} />
      <VerifierFields
        verifier={values.verifier}
        stored={source?.verifier ?? undefined}
        onChange={set('verifier')}
        error={error}
      />
      <Select
        label="Format"
        {...text('format')}
        options={[
          ['', 'Any'],
          ['cloudevents', 'CloudEvents'],
        ]}
      />
      <TextField
        label="Event type location"
        hint={`For example header.X-Topic, body.type or query.type.${byProvider}`}
        isMono
        {...text('place', 'event_type_location')}
      />
      <TextField
        label="Default event type"
        hint="For requests without an event type at this location."
        {...text('type', 'event_type')}
      />
      <TextArea
        label="Idempotency key locations"
        hint={`Locations whose values form the idempotency key, one per line. A repeated request creates no second event.${byProvider}`}
        rows={2}
        isMono
        {...text('keys', 'idempotency_keys')}
      />
      <TextArea
        label="Forwarded headers"
        hint={`One per line.${byProvider}`}
        rows={2}
        isMono
        {...text('headers', 'forward_headers')}
      />
      <TextArea
        label="Response to accepted requests"
        hint="Leave empty for the default response."
        rows={2}
        isMono
        {...text('answer', 'custom_response.body')}
      />
      {values.answer !== '' && (
        <Select
          label="Response content type"
          {...text('answerType')}
          options={[
            ['application/json', 'application/json'],
            ['text/plain', 'text/plain'],
          ]}
        />
      )}
      <KeepMessages isOn={values.keepMessages} onChange={set('keepMessages')} />
    </Form>
  );
}

const secret: FormSchema = { type: 'string', 'x-secret': true };
const HANDSHAKES: Readonly<Record<NonNullable<Verifier['handshake']>['type'], string>> = {
  hub_challenge: 'Meta, WhatsApp, Instagram',
  websub: 'WebSub',
  slack: 'Slack',
  monday: 'monday.com',
  microsoft_graph: 'Microsoft Graph',
  event_grid: 'Azure Event Grid',
  dropbox: 'Dropbox',
  okta: 'Okta',
  zoom: 'Zoom',
  x: 'X',
  reachable: 'Trello, Intercom, Mailchimp',
};
const HASHES = { SHA256: 'SHA-256', SHA512: 'SHA-512', SHA1: 'SHA-1' };
const ofProvider: FormSchema = {
  required: ['secret'],
  properties: {
    secret: { ...secret, title: 'Secret', description: 'Signing secret of the provider.' },
  },
};

const KINDS: Readonly<Record<Verifier['type'], readonly [label: string, fields: FormSchema]>> = {
  noop: ['None: accept all requests', {}],
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
      hash: { title: 'Hash', enum: Object.keys(HASHES), 'x-labels': HASHES },
      encoding: { title: 'Encoding', enum: ['hex', 'base64'] },
      secret: { ...secret, title: 'Secret' },
    }),
  ],
  github: ['GitHub', ofProvider],
  shopify: ['Shopify', ofProvider],
  stripe: ['Stripe', ofProvider],
  slack: ['Slack', ofProvider],
  zoom: ['Zoom', ofProvider],
  twilio: ['Twilio', ofProvider],
  intercom: ['Intercom', ofProvider],
  vercel: ['Vercel', ofProvider],
  standard_webhooks: ['Standard Webhooks', ofProvider],
};

const handshake: FormSchema = {
  type: 'object',
  title: 'Handshake',
  properties: {
    type: {
      title: 'Handshake',
      enum: Object.keys(HANDSHAKES),
      'x-labels': HANDSHAKES,
      description: 'The request with which the provider validates the URL.',
    },
    token: {
      ...secret,
      title: 'Verify token',
      description: 'The expected value of `hub.verify_token`.',
    },
  },
};

function group(name: string, properties: Readonly<Record<string, FormSchema>>): FormSchema {
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

function VerifierFields({
  verifier,
  stored,
  onChange,
  error,
}: {
  verifier: Verifier;
  stored: Verifier | undefined;
  onChange: (verifier: Verifier) => void;
  error: Error | undefined;
}) {
  const { type, ...fields } = verifier;
  const [, own] = KINDS[type];
  const schema = { ...own, properties: { ...own.properties, handshake } };
  const before = (stored?.type === type ? stored : {}) as Value;
  return (
    <>
      <Select
        label="Verification"
        hint="How the gateway verifies the sender of a request."
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
