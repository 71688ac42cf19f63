import { Type, type Static } from '@sinclair/typebox';
import type { InvalidField } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { MASK } from '@gateway/core/logging';
import {
  CHANNEL_KINDS,
  CHANNEL_TYPES,
  channelSettings,
  deleteChannel,
  findChannel,
  insertChannel,
  listChannels,
  testChannel,
  updateChannel,
  type ChannelRow,
  type ChannelType,
} from '@gateway/store/config';
import {
  found,
  listRoute,
  projectItem,
  projectRoute,
  type ProjectCall,
  type Route,
} from '../../api/route.js';
import { pageQuery, searchQuery } from '../../http/list-query.js';
import {
  assertValid,
  Id,
  Name,
  named,
  nullable,
  object,
  oneOf,
  optional,
  Timestamp,
} from '../../http/schema.js';

const Text = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 2000,
    pattern: '^[!-~]+$',
    'x-sentence': 'must be printable ASCII without spaces',
    description,
  });
const Settings = object(
  optional({
    url: Text(
      '`slack`, `teams`, `webhook`: URL that receives messages. A secret for `slack` and `teams`.',
    ),
    secret: Text('`webhook`: secret that signs requests according to Standard Webhooks.'),
    routing_key: Text('`pagerduty`: the integration key of a service, for the Events API v2.'),
    api_key: Text('`opsgenie`: the key of an API integration.'),
    api_url: Text(
      '`pagerduty`, `opsgenie`: origin of the API, such as `https://events.eu.pagerduty.com` or `https://api.eu.opsgenie.com`.',
    ),
  }),
  {
    description:
      'Settings of the channel. Secrets are masked in responses; send the mask to keep the stored secret.',
  },
);
const TYPES = Object.keys(CHANNEL_TYPES) as ChannelType[];
const kinds = nullable(
  Type.Array(named('NotificationKind', oneOf(CHANNEL_KINDS)), { minItems: 1, uniqueItems: true }),
  'Kinds of notifications to send; null sends all.',
);
const enabled = Type.Boolean({
  description: 'Whether the channel sends notifications. A disabled channel sends only tests.',
});

const NewChannel = named(
  'CreateNotificationChannel',
  object({
    name: Name,
    type: Type.Unsafe<ChannelType>({
      ...oneOf(TYPES),
      description:
        '`events` creates operational events of the project, which are delivered to the endpoints that subscribe to their types. The others send requests.',
    }),
    settings: Settings,
    ...optional({ kinds, enabled }),
  }),
);
const ChangedChannel = named(
  'ChangedNotificationChannel',
  object(optional({ name: Name, settings: Settings, kinds, enabled })),
);
const Channel = named(
  'NotificationChannel',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    type: oneOf(TYPES),
    settings: Settings,
    kinds,
    enabled,
    failures: Type.Integer({ description: 'Failed requests since the last success.' }),
    last_sent_at: nullable(Timestamp),
    last_error: nullable(Type.String(), 'Error of the last request; null after a success.'),
    last_error_at: nullable(Timestamp),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
);

const shown = { thing: 'notification channel', data: Channel } as const;

function view({ id, settings, type, ...row }: ChannelRow): unknown {
  const rows = channelSettings(type);
  const masked = Object.entries(settings).map(([name, value]) => [
    name,
    rows[name]?.isSecret ? MASK : value,
  ]);
  return { uid: id, ...row, type, settings: Object.fromEntries(masked) as object };
}

/**
 * Adds defaults and seals secrets. Throws `invalid_request` if a setting is missing, unknown or no
 * URL, or if a stored secret would be sent to another origin.
 */
function sealed(
  given: Static<typeof Settings>,
  { id, type, settings: stored }: Pick<ChannelRow, 'id' | 'type'> & Partial<ChannelRow>,
  { sealer }: Pick<ProjectCall, 'sealer'>,
): Readonly<Record<string, string>> {
  const rows = channelSettings(type);
  const values = given as Readonly<Record<string, string | undefined>>;
  const problems: InvalidField[] = [];
  const settings: Record<string, string> = {};
  const problem = (name: string, sentence: string) =>
    problems.push({ field: `settings.${name}`, sentence });
  for (const name of Object.keys(values))
    if (!rows[name]) problem(name, `does not belong to the type ${type}`);
  const isMoved =
    stored !== undefined && (values['api_url'] ?? rows['api_url']?.default) !== stored['api_url'];
  for (const [name, row] of Object.entries(rows)) {
    const value = values[name] ?? row.default;
    if (value === undefined) {
      if (!row.isOptional) problem(name, 'is missing');
    } else if (row.isSecret && value === MASK) {
      const kept = stored?.[name];
      if (kept === undefined)
        problem(name, 'holds a mask, but no secret is stored; give the secret');
      else if (isMoved) problem(name, 'is not sent to another origin; give it again');
      else settings[name] = kept;
    } else {
      if (row.isUrl && !isHttpUrl(value))
        problem(name, 'must be a URL that begins with https:// or http://, without credentials');
      settings[name] = row.isSecret
        ? sealer.seal(value, ['notification_channels', id, name])
        : value;
    }
  }
  assertValid(problems);
  return settings;
}

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}

export const notificationChannelRoutes: readonly Route[] = [
  projectRoute(
    'POST /notification-channels',
    'Creates a channel that receives notifications of the project in addition to email.',
    { body: NewChannel, data: Channel, status: 201 },
    async (call) => {
      const { body, database, project, config } = call;
      const id = newId();
      const settings = sealed(body.settings, { id, type: body.type }, call);
      const { notification_channels_per_project: max } = config.limits;
      const fields = { ...body, id, settings };
      const row = await insertChannel(database.knex, project.id, fields, max);
      return { message: 'notification channel created', data: view(row) };
    },
  ),
  listRoute(
    '/notification-channels',
    'Lists notification channels.',
    {
      query: object({ ...pageQuery, ...searchQuery }),
      title: 'notification channels',
      data: Channel,
    },
    ({ database, project, query: { q } }, page) =>
      listChannels(database.knex, project.id, {}, page, q),
    view,
  ),
  projectItem(
    'GET /notification-channels/:id',
    'Shows a notification channel, with the error of its last request.',
    shown,
    ({ database, project, id }) => findChannel(database.knex, project.id, id),
    view,
  ),
  projectItem(
    'PUT /notification-channels/:id',
    'Updates the given fields of a notification channel. `settings` is replaced as a whole.',
    { ...shown, body: ChangedChannel },
    async (call) => {
      const { database, project, id, body } = call;
      const stored = found(await findChannel(database.knex, project.id, id), shown.thing, id);
      const settings = body.settings && sealed(body.settings, stored, call);
      const fields = { ...body, ...(settings && { settings }) } as Partial<ChannelRow>;
      return updateChannel(database.knex, project.id, id, fields);
    },
    view,
  ),
  projectItem(
    'DELETE /notification-channels/:id',
    'Deletes a notification channel.',
    { thing: shown.thing },
    ({ database, project, id }) => deleteChannel(database.knex, project.id, id),
  ),
  projectItem(
    'POST /notification-channels/:id/test',
    'Sends a test notification. An agent sends it within seconds and records the result in `last_sent_at` and `last_error`.',
    { ...shown, message: 'test queued', name: 'test', isAudited: false },
    async ({ database, project, id }) => {
      const row = await findChannel(database.knex, project.id, id);
      if (row) await testChannel(database.knex, row);
      return row;
    },
    view,
  ),
];
