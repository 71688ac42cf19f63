import { createRequire } from 'node:module';
import { maskConnection, sealConnection } from '@gateway/core/crypto';
import type { HttpSettings, SourceFields, SourceRow } from '@gateway/store/config';
import {
  nullable,
  optional,
  string,
  Type,
  type object,
  type ProjectCall,
  type Static,
  type TUnsafe,
} from '../../api/vocabulary.js';
import { checkFailed, requireConnection, storedConnection, type GivenPubSub } from './pub-sub.js';

/**
 * The push source whose connection is fields of the source. The connection of others stands below
 * `pub_sub`, as that of a broker.
 */
export const HTTP = 'http';
const { properties } = createRequire(import.meta.url)('@gateway/source-http/connection.json') as {
  readonly properties: Readonly<Record<keyof HttpSettings, object>>;
};

export const HTTP_NAMES = Object.keys(properties) as readonly (keyof HttpSettings)[];
/** Sources of brokers do not have these. */
export const HTTP_ONLY = HTTP_NAMES.filter((name) => name !== 'forward_headers');

const all = Object.fromEntries(HTTP_NAMES.map((name) => [name, Type.Unsafe(properties[name])])) as {
  readonly [Name in keyof HttpSettings]: TUnsafe<HttpSettings[Name]>;
};

export const httpFields = optional(all);
export type HttpFields = Static<ReturnType<typeof object<typeof httpFields>>>;

const { title: _, ...verifier } = all.verifier;

/** Null for other sources. */
export const httpView = {
  mask_id: nullable(string()),
  url: nullable(
    string('URL that providers post to; a path if the server does not know its public host name.'),
  ),
  ...all,
  verifier: nullable(verifier as typeof all.verifier),
  idempotency_keys: nullable(all.idempotency_keys),
  forward_headers: nullable(
    all.forward_headers,
    'Headers that travel with the event, besides those of its trace. Null for sources of brokers that were made before this field existed: all of theirs travel.',
  ),
};

export type PushBody = HttpFields & { readonly pub_sub?: GivenPubSub };

/** Whether its sources have their connection below `pub_sub`. */
export function isNamedPush(type: string | undefined, { plugins }: Pick<ProjectCall, 'plugins'>) {
  return type !== undefined && type !== HTTP && plugins.pushSources.has(type);
}

/** Undefined for a source of the plugin `http`. */
export function namedConnection({ pub_sub }: Pick<SourceRow, 'pub_sub'>) {
  return pub_sub[pub_sub.type] as Record<string, unknown> | undefined;
}

/**
 * Seals secrets. The plugin checks the connection and completes that of a new source. Omitted fields
 * of a source of the plugin `http` keep their stored values.
 */
export async function readPush(
  { pub_sub: named, ...fields }: PushBody,
  stored: SourceRow | undefined,
  call: Pick<ProjectCall, 'plugins' | 'sealer' | 'project' | 'limits' | 'log' | 'id'>,
): Promise<Pick<SourceFields, 'pub_sub' | 'http'>> {
  const { plugins, sealer, project, limits, log, id } = call;
  const type = named?.type ?? HTTP;
  const active = plugins.pushSources.get(type)!;
  const { connectionSchema: schema } = active;
  const sealed = stored && (namedConnection(stored) ?? { ...stored.http });
  const kept = storedConnection(sealed, schema, call);
  const plain = kept?.plain;
  const given = named ?? { type, [type]: { ...plain, ...fields } };
  // Another way to verify requests has another secret.
  const isKept = verifierType(plain) === verifierType(given[type]);
  const prefix = named ? `pub_sub.${type}` : '';
  const connection = requireConnection(given, schema, isKept ? plain : undefined, prefix);
  if (named) await limits.tests(project);
  const complete = await active
    .load()
    .then((plugin) => plugin.check(connection, { isNew: !stored, projectType: project.type }))
    .catch((cause: unknown) => {
      throw checkFailed(type, cause, { log, prefix });
    });
  const resealed = sealConnection(complete, schema, id, sealer, kept);
  return named
    ? { pub_sub: { type, [type]: resealed }, http: {} as HttpSettings }
    : { pub_sub: { type }, http: resealed as unknown as HttpSettings };
}

function verifierType(connection: unknown): unknown {
  const { verifier: it } = (connection ?? {}) as {
    readonly verifier?: { readonly type?: unknown };
  };
  return it?.type;
}

/** The fields of a source of the plugin `http`, null for other sources. */
export function httpViewOf(row: SourceRow, { plugins }: Pick<ProjectCall, 'plugins'>): object {
  const { connectionSchema: schema = {} } = plugins.pushSources.get(HTTP) ?? {};
  const none = Object.fromEntries(HTTP_NAMES.map((name) => [name, null]));
  return row.http && !namedConnection(row)
    ? { ...none, ...maskConnection({ ...row.http }, schema) }
    : none;
}
