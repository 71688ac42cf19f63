const NOT_GRPC =
  'The server there does not speak gRPC; it may be the port of a collector for OTLP over HTTP, 4318. Give the gRPC port, by default 4317';

/** By the library's message, the most certain first. */
const CAUSES: readonly (readonly [sign: RegExp, cause: string])[] = [
  [
    /Protocol error|no application protocol|Received HTTP status code (?!401|403|407|429|5)/i,
    NOT_GRPC,
  ],
  [
    /wrong version number|packet length too long|http request/i,
    'The server there does not speak TLS. For plaintext write http:// before its address',
  ],
  [
    /^(16|7) |status code (401|403|407)/,
    'The collector rejects the credentials. Check tracer.otel.otel_auth.header_name and header_value',
  ],
  [
    /ECONNREFUSED/,
    'Nothing listens there. Check host and port, by default 4317, and that the collector runs',
  ],
  [
    /Name resolution failed|ENOTFOUND|EAI_AGAIN/,
    'The name of the host is not known. Check the host',
  ],
  [
    /certificate has expired|not yet valid/,
    'The certificate of the collector is out of date. Renew it',
  ],
  [
    /altnames|does not match certificate/,
    'The certificate of the collector is of another host. Give the host that it names',
  ],
  [
    /certificate|CERT_|unknown ca/i,
    'The certificate of the collector is of no known authority. Name the authority with tracer.otel.ca_file',
  ],
  [
    /bad record mac|SSL routines|EPROTO/,
    'TLS failed. Check that the collector speaks TLS there; for plaintext write http:// before its address',
  ],
  [
    /Failed to connect|ECONNRESET|closed|dropped/i,
    'The server closes connections. It may require TLS, for which write https:// before its address, or not speak gRPC (4317 by default; 4318 is for HTTP)',
  ],
  [
    /DEADLINE_EXCEEDED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/,
    'The collector does not answer. Check host, port and firewalls; gRPC is on 4317 by default',
  ],
];

/** With the setting to change, and the library's message. */
export function explainFailure(said: string, collectorUrl: string): string {
  const text = said.replace(/\s*Resolution note:\s*$/, '').trim();
  const [, cause] = CAUSES.find(([sign]) => sign.test(text)) ?? [];
  return cause === undefined
    ? text
    : `${cause} (tracer.otel.collector_url is ${collectorUrl}). The error: ${text}`;
}
