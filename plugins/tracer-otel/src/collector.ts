import { PluginError } from '@gateway/plugin';
import { credentials, Metadata, type ChannelCredentials } from '@grpc/grpc-js';

export interface Settings {
  readonly collector_url: string;
  readonly sample_rate: number;
  readonly insecure_skip_verify: boolean;
  readonly otel_auth?: { readonly header_name?: string; readonly header_value?: string };
}

export interface Collector {
  readonly url: string;
  readonly credentials: ChannelCredentials;
  readonly metadata: Metadata;
}

const ADDRESS = /^(?:(https?):\/\/)?((?:[^\s:/@]+|\[[0-9a-f:.]+\]):\d{1,5})\/?$/i;

/** How the collector is reached. Throws a `PluginError` that names the setting. */
export function collectorOf(settings: Settings): Collector {
  const [, scheme, address] = ADDRESS.exec(settings.collector_url) ?? [];
  if (address === undefined) {
    throw new PluginError(`tracer.otel.collector_url is "${settings.collector_url}", which is not the address of a collector.`, {
      fix: 'Set it to <host>:<port> (GATEWAY_OTEL_COLLECTOR_URL, --otel-collector-url), for example collector:4317.',
    });
  }
  const plain = scheme?.toLowerCase() === 'http' || (scheme === undefined && settings.insecure_skip_verify);
  return {
    url: `${plain ? 'http' : 'https'}://${address}`,
    credentials: plain
      ? credentials.createInsecure()
      : credentials.createSsl(null, null, null, { rejectUnauthorized: !settings.insecure_skip_verify }),
    metadata: metadataOf(settings),
  };
}

function metadataOf({ otel_auth: { header_name: name, header_value: value } = {} }: Settings): Metadata {
  const metadata = new Metadata();
  if (!name && !value) return metadata;
  if (!name || !value) {
    const [given, missing] = name ? ['header_name', 'header_value'] : ['header_value', 'header_name'];
    throw new PluginError(`tracer.otel.otel_auth.${given} is set, but tracer.otel.otel_auth.${missing} is not.`, {
      fix: 'Set both or neither.',
    });
  }
  try {
    metadata.set(name, value);
  } catch {
    // The error of the library quotes the value.
    throw new PluginError(
      'tracer.otel.otel_auth is not a header: the name takes letters, digits, dashes, dots and underscores, the value ASCII.',
      {
        fix: 'Correct tracer.otel.otel_auth.header_name or header_value.',
      },
    );
  }
  return metadata;
}
