import { keepSecrets, maskConnection, sealConnection } from '@gateway/core/crypto';
import { didYouMean } from '@gateway/core/errors';
import { canonicalConnection, whySourceInactive } from '@gateway/core/plugins';
import { type CodecRecord, codecField, openCodecSettings } from '@gateway/ingest/decode/codecs';
import type { SourceRow } from '@gateway/store/config';
import {
  assertValid,
  connectionValidator,
  invalid,
  Type,
  type ProjectCall,
} from '../../api/vocabulary.js';
import { checkFailed } from './pub-sub.js';

export const CodecSchema = Type.Object(
  {
    type: Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'The codec: avro, protobuf, json-schema, cloudevents, or one of a third party.',
    }),
  },
  {
    description:
      'Makes JSON of messages in another format. Beside the type stand the settings of the codec, whose schema is that of its plugin (`GET /sources/codecs`).',
    additionalProperties: true,
  },
);

/** Without a codec, messages are decoded by their content type. */
export interface GivenCodec extends Readonly<Record<string, unknown>> {
  readonly type: string;
}

export interface ReadCodec {
  readonly sealed: CodecRecord;
  readonly plain: Readonly<Record<string, unknown>>;
}

/** As `readPubSub`. */
export function readCodec(
  { type, ...given }: GivenCodec,
  stored: SourceRow['pub_sub'] | undefined,
  { plugins, sealer, id }: Pick<ProjectCall, 'plugins' | 'sealer' | 'id'>,
): ReadCodec {
  const { connectionSchema } = requireCodec(type, plugins);
  const { type: typeBefore, ...before } = stored?.codec ?? { type: undefined };
  const kept =
    typeBefore === type
      ? {
          sealed: { codec: before },
          plain: { codec: openCodecSettings(before, connectionSchema, id, sealer.open) },
        }
      : undefined;
  const canonical = canonicalConnection(given, connectionSchema);
  const { connection, problems } = keepSecrets(
    canonical,
    connectionSchema,
    kept?.plain.codec,
    'codec',
  );
  assertValid(problems);
  assertValid(connectionValidator(connectionSchema, 'codec')(connection));
  const sealed = sealConnection(
    { codec: connection },
    codecField(connectionSchema),
    id,
    sealer,
    kept,
  );
  return { sealed: { type, ...(sealed['codec'] as object) }, plain: { ...connection } };
}

function requireCodec(type: string, { codecs, table }: ProjectCall['plugins']) {
  const codec = codecs.get(type);
  if (codec) return codec;
  const inactive = whySourceInactive(table, type, 'codec');
  if (inactive)
    throw invalid(
      'codec.type',
      `names a codec that is inactive: ${inactive.reason}; ${inactive.fix}`,
    );
  const known = [...codecs.keys()].sort();
  throw invalid(
    'codec.type',
    `is not an active codec; active codecs: ${known.join(', ') || 'none'}${didYouMean(type, known)}`,
  );
}

/** Only its type if its plugin is inactive, because only the plugin's schema identifies secrets. */
export function codecView(
  { codec }: SourceRow['pub_sub'],
  { plugins }: Pick<ProjectCall, 'plugins'>,
): GivenCodec | null {
  if (!codec) return null;
  const { type, ...sealed } = codec;
  const active = plugins.codecs.get(type);
  return { type, ...(active && maskConnection(sealed, active.connectionSchema)) };
}

/** Returns the codec's advice, or null. Throws `source_check_failed`. */
export async function checkCodec(
  { sealed: { type }, plain }: ReadCodec,
  { plugins, log, limits, project }: Pick<ProjectCall, 'plugins' | 'log' | 'limits' | 'project'>,
): Promise<string | null> {
  await limits.tests(project);
  try {
    const codec = await plugins.codecs.get(type)!.load();
    const advice = await codec.check(plain);
    return advice ? `${advice.message} ${advice.fix}` : null;
  } catch (cause) {
    throw checkFailed(type, cause, { log, prefix: 'codec' });
  }
}
