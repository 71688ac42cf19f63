import fs from 'node:fs';
import {
  type Metadata,
  Server,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { fieldsOf, type Fields } from './protobuf.js';
import { until } from './until.js';

type Attributes = Readonly<Record<string, unknown>>;

export interface OtlpSpan {
  readonly name: string;
  readonly kind: 'unspecified' | 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined for a root span. */
  readonly parentSpanId: string | undefined;
  /** Epoch milliseconds, with fractions. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  readonly links: readonly {
    readonly traceId: string;
    readonly spanId: string;
    readonly attributes: Attributes;
  }[];
  readonly status: { readonly code: 'unset' | 'ok' | 'error'; readonly message: string };
  /** Attributes of the sending process. */
  readonly resource: Attributes;
}

export type CollectorAnswer = 'accept' | 'refuse' | 'hang';

/** A fake OpenTelemetry collector. */
export interface Collector {
  /** `127.0.0.1:port`, or `localhost:port` with TLS. */
  readonly address: string;
  readonly port: number;
  /** Spans in order of arrival. */
  readonly spans: readonly OtlpSpan[];
  readonly requests: readonly { readonly body: Buffer; readonly metadata: Metadata }[];
  /** Everything received, to search for leaked secrets. */
  text(): string;
  /** Waits for `count` spans of this name and returns them. */
  arrived(name: string, count?: number): Promise<readonly OtlpSpan[]>;
  /** Changes the responses; the default is `accept`. */
  answer(changed: CollectorAnswer): void;
  close(): void;
}

/**
 * Serves TraceService of https://github.com/open-telemetry/opentelemetry-proto over gRPC on
 * loopback.
 * @param options.port reuses the port of a closed collector
 * @param options.tls PEM files; plain text without them
 */
export async function collector(
  options: {
    port?: number;
    tls?: { readonly key: string; readonly certificate: string };
    answer?: CollectorAnswer;
  } = {},
): Promise<Collector> {
  const requests: { body: Buffer; metadata: Metadata }[] = [];
  const spans: OtlpSpan[] = [];
  let answering = options.answer ?? 'accept';
  const server = new Server();
  const same = (bytes: Buffer) => bytes;
  const serialization = {
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
  server.addService(
    { Export: { path, requestStream: false, responseStream: false, ...serialization } },
    {
      Export: (
        { request: body, metadata }: ServerUnaryCall<Buffer, Buffer>,
        answer: sendUnaryData<Buffer>,
      ) => {
        requests.push({ body, metadata });
        if (answering === 'hang') return;
        if (answering === 'refuse')
          return answer({ code: status.UNAUTHENTICATED, details: 'who are you' });
        spans.push(...spansOf(body));
        answer(null, Buffer.alloc(0));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(
      `127.0.0.1:${options.port ?? 0}`,
      credentialsOf(options.tls),
      (error, bound) => (error ? reject(error) : resolve(bound)),
    ),
  );
  return {
    address: `${options.tls ? 'localhost' : '127.0.0.1'}:${port}`,
    port,
    spans,
    requests,
    text: () =>
      requests
        .map(({ body, metadata }) => `${body.toString()}${JSON.stringify(metadata.getMap())}`)
        .join('\n'),
    arrived: (name, count = 1) =>
      until(`${count} spans ${name} at the collector`, () => {
        const found = spans.filter((span) => span.name === name);
        return found.length >= count && found;
      }),
    answer: (changed) => {
      answering = changed;
    },
    close: () => server.forceShutdown(),
  };
}

function credentialsOf(
  tls: { readonly key: string; readonly certificate: string } | undefined,
): ServerCredentials {
  if (!tls) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(null, [
    { private_key: fs.readFileSync(tls.key), cert_chain: fs.readFileSync(tls.certificate) },
  ]);
}

const KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const CODES = ['unset', 'ok', 'error'] as const;

/** The field numbers of trace_service.proto, trace.proto, resource.proto and common.proto. */
function spansOf(request: Buffer): OtlpSpan[] {
  return fieldsOf(request)
    .messages(1)
    .flatMap((resourceSpans) => {
      const resource = attributesOf(resourceSpans.messages(1).flatMap((it) => it.messages(1)));
      const spans = resourceSpans.messages(2).flatMap((scopeSpans) => scopeSpans.messages(2));
      return spans.map((span) => spanOf(span, resource));
    });
}

function spanOf(span: Fields, resource: Attributes): OtlpSpan {
  const hex = (number: number, of = span) => of.bytes(number).at(-1)?.toString('hex') ?? '';
  const milliseconds = (number: number) => Number(span.numbers(number).at(-1) ?? 0n) / 1e6;
  const [status] = span.messages(15);
  return {
    name: span.text(5),
    kind: KINDS[Number(span.numbers(6).at(-1) ?? 0)] ?? 'unspecified',
    traceId: hex(1),
    spanId: hex(2),
    parentSpanId: hex(4) || undefined,
    startedAt: milliseconds(7),
    endedAt: milliseconds(8),
    attributes: attributesOf(span.messages(9)),
    events: span
      .messages(11)
      .map((event) => ({ name: event.text(2), attributes: attributesOf(event.messages(3)) })),
    links: span.messages(13).map((link) => ({
      traceId: hex(1, link),
      spanId: hex(2, link),
      attributes: attributesOf(link.messages(4)),
    })),
    status: {
      code: CODES[Number(status?.numbers(3).at(-1) ?? 0)] ?? 'unset',
      message: status?.text(2) ?? '',
    },
    resource,
  };
}

function attributesOf(pairs: readonly Fields[]): Attributes {
  return Object.fromEntries(pairs.map((pair) => [pair.text(1), valueOf(pair.messages(2)[0])]));
}

function valueOf(value: Fields | undefined): unknown {
  if (!value) return undefined;
  const [[truth], [integer], [list]] = [value.numbers(2), value.numbers(3), value.messages(5)];
  if (value.bytes(1).length > 0) return value.text(1);
  if (truth !== undefined) return truth === 1n;
  if (integer !== undefined) return Number(BigInt.asIntN(64, integer));
  if (list) return list.messages(1).map(valueOf);
  return value.double(4);
}
