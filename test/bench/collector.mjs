// @ts-check
// The OpenTelemetry collector of the benchmark, in a separate process: receives spans over
// OTLP/gRPC, counts requests and bytes, and discards them. IPC: {} → { requests, bytes }.
import { Server, ServerCredentials } from '@grpc/grpc-js';

const counted = { requests: 0, bytes: 0 };
const same = (/** @type {Buffer} */ bytes) => bytes;
const server = new Server({ 'grpc.max_receive_message_length': -1 });
server.addService(
  {
    Export: {
      path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
      requestStream: false,
      responseStream: false,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    },
  },
  {
    Export: (
      /** @type {{ request: Buffer }} */ { request },
      /** @type {(error: null, answer: Buffer) => void} */ answer,
    ) => {
      counted.requests++;
      counted.bytes += request.length;
      answer(null, Buffer.alloc(0));
    },
  },
);
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  process.send?.({ port });
});
process.on('message', () => process.send?.(counted));
process.on('disconnect', () => process.exit(0));
