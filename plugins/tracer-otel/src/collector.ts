import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';
import { PluginError } from '@gateway/plugin';
import { credentials, Metadata } from '@grpc/grpc-js';

export interface Settings {
  readonly collector_url: string;
  readonly sample_rate: number;
  readonly insecure_skip_verify: boolean;
  readonly ca_file?: string;
  readonly otel_auth?: { readonly header_name?: string; readonly header_value?: string };
}

export type OtlpCollector = ReturnType<typeof collectorOf>;

const ADDRESS = /^(?:(https?):\/\/)?((?:[^\s:/@]+|\[[0-9a-f:.]+\]):\d{1,5})\/?$/i;

/** @throws PluginError if a setting is invalid, naming the setting */
export function collectorOf(settings: Settings) {
  const [, scheme, address] = ADDRESS.exec(settings.collector_url) ?? [];
  if (address === undefined) {
    throw new PluginError(
      `tracer.otel.collector_url is "${settings.collector_url}", which is not the address of a collector.`,
      {
        fix: 'Set it to <host>:<port> (GATEWAY_OTEL_COLLECTOR_URL, --otel-collector-url), for example collector:4317.',
      },
    );
  }
  const plain =
    scheme?.toLowerCase() === 'http' || (scheme === undefined && settings.insecure_skip_verify);
  return {
    url: `${plain ? 'http' : 'https'}://${address}`,
    credentials: plain
      ? credentials.createInsecure()
      : credentials.createSsl(authoritiesOf(settings), null, null, {
          rejectUnauthorized: !settings.insecure_skip_verify,
        }),
    metadata: metadataOf(settings),
  };
}

/** Undefined before Node.js 22.15. Its result includes NODE_EXTRA_CA_CERTS. */
const { getCACertificates } = tls as { getCACertificates?: (kind: 'default') => string[] };

function authoritiesOf({ ca_file: path }: Settings): Buffer | null {
  if (path === undefined) return null;
  const refused = (why: string) =>
    new PluginError(`tracer.otel.ca_file is ${path}, and ${why}.`, {
      fix: 'Name a file with the certificate of the authority in PEM form (GATEWAY_OTEL_CA_FILE, --otel-ca-file).',
    });
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw refused(`it cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  const added = text.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g) ?? [];
  if (added.length === 0) throw refused('it holds no certificate');
  try {
    for (const certificate of added) new X509Certificate(certificate);
  } catch {
    throw refused('a certificate in it is damaged');
  }
  return Buffer.from(
    [...(getCACertificates?.('default') ?? tls.rootCertificates), ...added].join('\n'),
  );
}

function metadataOf({
  otel_auth: { header_name: name, header_value: value } = {},
}: Settings): Metadata {
  const metadata = new Metadata();
  if (!name && !value) return metadata;
  if (!name || !value) {
    const [given, missing] = name
      ? ['header_name', 'header_value']
      : ['header_value', 'header_name'];
    throw new PluginError(
      `tracer.otel.otel_auth.${given} is set, but tracer.otel.otel_auth.${missing} is not.`,
      { fix: 'Set both or neither.' },
    );
  }
  try {
    metadata.set(name, value);
  } catch {
    // Set no cause, because the library's error quotes the value.
    const allowed = 'the name takes letters, digits, dashes, dots and underscores, the value ASCII';
    throw new PluginError(`tracer.otel.otel_auth is not a header: ${allowed}.`, {
      fix: 'Correct tracer.otel.otel_auth.header_name or header_value.',
    });
  }
  return metadata;
}
