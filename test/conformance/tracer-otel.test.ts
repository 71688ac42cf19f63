import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall } from '@grpc/grpc-js';
import * as api from '@opentelemetry/api';
import { suite } from 'uvu';
import { tracerConformance, tracerRules, type Receiver, type ReceivedSpan, type TracerRig } from '@gateway/plugin/conformance';
import plugin from '@gateway/tracer-otel';
import { judged } from './judged.js';

type Settings = Parameters<typeof plugin.start>[0];

const conforms = suite('conformance/tracer-otel');

const settings = { sample_rate: 1, insecure_skip_verify: false };

const rig: TracerRig<Settings> = {
  api,
  open: collector,
  sampled: (given, rate) => ({ ...given, sample_rate: rate }),
  away: { ...settings, collector_url: 'http://127.0.0.1:1' },
  wrong: {
    settings: { ...settings, collector_url: 'http://collector:4317', otel_auth: { header_name: 'a b', header_value: 'hidden-value' } },
    secrets: ['hidden-value'],
  },
};

judged(conforms, tracerRules, () => tracerConformance(plugin, rig));

conforms.run();

/** A collector, as far as a sender sees it: https://github.com/open-telemetry/opentelemetry-proto */
async function collector(): Promise<Receiver<Settings>> {
  const spans: ReceivedSpan[] = [];
  const server = new Server();
  const same = (bytes: Buffer) => bytes;
  const serialization = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
  server.addService(
    { Export: { path, requestStream: false, responseStream: false, ...serialization } },
    {
      Export: ({ request }: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
        spans.push(...spansOf(request));
        answer(null, Buffer.alloc(0));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  return {
    settings: { ...settings, collector_url: `http://127.0.0.1:${port}` },
    spans: () => spans,
    close: () => Promise.resolve(server.forceShutdown()),
  };
}

/** The numbers are those of trace.proto, resource.proto and common.proto. */
function spansOf(request: Buffer): ReceivedSpan[] {
  return all(request, 1).flatMap((resourceSpans) => {
    const about = attributesOf(all(resourceSpans, 1).flatMap((resource) => all(resource, 1)));
    const service = {
      name: about['service.name'] ?? '',
      version: about['service.version'] ?? '',
      environment: about['deployment.environment.name'] ?? '',
    };
    const spans = all(resourceSpans, 2).flatMap((scopeSpans) => all(scopeSpans, 2));
    return spans.map((span) => {
      const [parent] = all(span, 4);
      return {
        name: String(all(span, 5)[0]),
        traceId: all(span, 1)[0]?.toString('hex') ?? '',
        spanId: all(span, 2)[0]?.toString('hex') ?? '',
        ...(parent && parent.length > 0 && { parentSpanId: parent.toString('hex') }),
        attributes: attributesOf(all(span, 9)),
        service,
      };
    });
  });
}

function attributesOf(pairs: readonly Buffer[]): Record<string, string> {
  return Object.fromEntries(pairs.map((pair) => [String(all(pair, 1)[0]), String(all(all(pair, 2)[0] ?? Buffer.alloc(0), 1)[0])]));
}

/** The fields of a message with this number that have a length: https://protobuf.dev/programming-guides/encoding/ */
function all(message: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++] ?? 0;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    switch (key & 7) {
      case 0:
        varint();
        break;
      case 1:
        at += 8;
        break;
      case 2: {
        const length = varint();
        if (key >>> 3 === wanted) found.push(message.subarray(at, at + length));
        at += length;
        break;
      }
      default:
        at += 4;
    }
  }
  return found;
}
