import { type Open, openConnection } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { type ActivatedPlugins, whySourceInactive } from '@gateway/core/plugins';
import type { SourceRecord } from '@gateway/store/config';
import { SourceCodec } from './source-codec.js';

export type CodecRecord = NonNullable<SourceRecord['pub_sub']['codec']>;

export interface CodecsOptions {
  readonly plugins: Pick<ActivatedPlugins, 'codecs' | 'table'>;
  readonly open: Open;
  readonly log: Log;
}

export interface CodecOfSource {
  readonly sourceId: string;
  readonly codec: CodecRecord;
}

/** The plugin is imported with the first message. */
export function openCodec(
  { sourceId, codec: { type, ...sealed } }: CodecOfSource,
  { plugins, open, log }: CodecsOptions,
  waits?: (error: Error | null) => void,
): SourceCodec {
  return new SourceCodec({
    type,
    ...(waits && { waits }),
    async open() {
      const active = plugins.codecs.get(type);
      if (!active) throw codecInactive(type, plugins);
      const plugin = await active.load();
      const { connectionSchema } = active;
      return plugin.open(
        { ...openCodecSettings(sealed, connectionSchema, sourceId, open) },
        log.child({ source_id: sourceId, codec: type }),
      );
    },
  });
}

/** The place of a secret has the name of the field. */
export function openCodecSettings(
  sealed: Readonly<Record<string, unknown>>,
  schema: Readonly<Record<string, unknown>>,
  sourceId: string,
  open: Open,
): Readonly<Record<string, unknown>> {
  return openConnection({ codec: sealed }, codecField(schema), sourceId, open)['codec'] as Readonly<
    Record<string, unknown>
  >;
}

/** The schema of an object whose field `codec` has the settings. */
export function codecField(schema: Readonly<Record<string, unknown>>) {
  return { type: 'object', properties: { codec: schema } };
}

function codecInactive(type: string, { codecs, table }: CodecsOptions['plugins']): GatewayError {
  const inactive = whySourceInactive(table, type, 'codec');
  const active = [...codecs.keys()].sort().join(', ') || 'none';
  return new GatewayError('codec_unavailable', {
    name: type,
    reason: inactive?.reason ?? `it is not installed; active codecs: ${active}`,
    fix: inactive?.fix ?? 'install its package with `gateway plugins install`',
  });
}

export type CodecOf = (of: CodecOfSource) => SourceCodec;

const OPEN_MAX = 100;

/** Codecs of sources whose messages are decoded on request, such as for a replay. */
export function keptCodecs(options: CodecsOptions): CodecOf {
  const kept = new Map<string, { readonly key: string; readonly codec: SourceCodec }>();
  return ({ sourceId, codec }) => {
    const key = JSON.stringify(codec);
    const known = kept.get(sourceId);
    if (known?.key === key) return known.codec;
    kept.delete(sourceId);
    for (const oldest of kept.keys()) {
      if (kept.size < OPEN_MAX) break;
      kept.delete(oldest);
    }
    const opened = openCodec({ sourceId, codec }, options);
    kept.set(sourceId, { key, codec: opened });
    return opened;
  };
}
