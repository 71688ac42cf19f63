import { newId } from '@gateway/core/events';
import { findSource } from '@gateway/store/config';
import {
  described,
  found,
  Id,
  invalid,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  projectRoute,
  string,
  Type,
  type Route,
} from '../../api/vocabulary.js';
import {
  checkConnection,
  PubSubSchema,
  pubSubView,
  readPubSub,
  type GivenPubSub,
} from './pub-sub.js';
import { HTTP } from './push-source.js';

const SourcePlugin = namedObject('SourcePlugin', {
  name: string('The `type` of `pub_sub`, and the name of the field that holds the connection.'),
  kind: oneOf(
    ['pull', 'push'],
    '`pull` for sources of type `pub_sub`, `push` for sources of type `http`.',
  ),
  connection: Type.Unsafe<Readonly<Record<string, unknown>>>({
    type: 'object',
    additionalProperties: true,
    description: 'JSON Schema of the connection. Fields with `x-secret` are masked in responses.',
  }),
});
const Codec = namedObject('Codec', {
  name: string('The `type` of the `codec` of a source.'),
  settings: Type.Unsafe<Readonly<Record<string, unknown>>>({
    type: 'object',
    additionalProperties: true,
    description:
      'JSON Schema of the fields beside the type. Those with `x-secret` are masked in responses.',
  }),
});
const ConnectionTest = namedObject(
  'ConnectionTest',
  optional({
    pub_sub: PubSubSchema,
    source_id: described(
      Id,
      'Tests the connection of this source, or takes its secrets where `pub_sub` masks or omits them.',
    ),
  }),
);
const ConnectionTested = namedObject('ConnectionTestResult', {
  advice: nullable(string(), 'Recommended changes to a connection that works.'),
});

export const connectionRoutes: readonly Route[] = [
  projectRoute(
    'GET /sources/types',
    'Lists the active source plugins, with the schemas of their connections.',
    { data: object({ content: Type.Array(SourcePlugin) }), name: 'listTypes' },
    ({ plugins }) => {
      const content = [...plugins.sources, ...plugins.pushSources]
        .filter(([name]) => name !== HTTP)
        .map(([name, { manifest, connectionSchema }]) => ({
          name,
          kind: manifest.sourceKind ?? 'pull',
          connection: connectionSchema,
        }));
      return Promise.resolve({
        message: 'source types',
        data: { content: content.sort((a, b) => a.name.localeCompare(b.name)) },
      });
    },
  ),
  projectRoute(
    'GET /sources/codecs',
    'Lists the active codecs, with the schemas of their settings.',
    { data: object({ content: Type.Array(Codec) }), name: 'listCodecs' },
    ({ plugins }) => {
      const content = [...plugins.codecs].map(([name, { connectionSchema }]) => ({
        name,
        settings: connectionSchema,
      }));
      return Promise.resolve({
        message: 'source codecs',
        data: { content: content.sort((a, b) => a.name.localeCompare(b.name)) },
      });
    },
  ),
  projectRoute(
    'POST /sources/test_connection',
    'Tests a new connection or that of a source. Nothing is stored.',
    { body: ConnectionTest, data: ConnectionTested, name: 'testConnection', isAudited: false },
    async (call) => {
      const { database, project, body } = call;
      const { pub_sub: asked, source_id: id } = body;
      const source =
        id === undefined
          ? undefined
          : found(await findSource(database.knex, project.id, id), 'source', id);
      if (source?.http)
        throw invalid('source_id', 'is a source of type http, which has no connection');
      const given = asked ?? (source && (pubSubView(source.pub_sub, call) as GivenPubSub));
      if (!given) throw invalid('pub_sub', 'is missing; give pub_sub or source_id');
      const { sealed, connection } = readPubSub(given, source?.pub_sub, {
        ...call,
        id: source?.id ?? newId(),
      });
      return {
        message: 'the connection works',
        data: { advice: await checkConnection(sealed, connection, call) },
      };
    },
  ),
];
