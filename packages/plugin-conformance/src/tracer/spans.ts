import { must } from '../run/rule.js';
import { about, remote, type Receiver, type TracerRig, type TracerRule } from './bench.js';

const withoutSampling = ({ sampled }: TracerRig) =>
  sampled === undefined ? 'the rig has no `sampled`' : undefined;
const sampling =
  ({ sampled }: TracerRig, rate: 0 | 1) =>
  ({ settings }: Receiver) =>
    sampled!(settings, rate);

export const spanRules: Readonly<Record<string, TracerRule>> = {
  'sends-spans': {
    sentence:
      'A span that has ended arrives with its name and its ids, without waiting for `close`.',
    test: async (bench) => {
      const receiver = await bench.open();
      await bench.start(receiver.settings);
      const sent = bench.emit('alone');
      const came = await bench.arrived(receiver, 'alone');
      must(
        came.traceId === sent.traceId,
        `its trace id is ${sent.traceId}, and ${came.traceId} arrived`,
      );
      must(
        came.spanId === sent.spanId,
        `its span id is ${sent.spanId}, and ${came.spanId} arrived`,
      );
    },
  },
  'sends-attributes': {
    sentence: 'The attributes of a span arrive with it.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() => bench.emit('with attributes'));
      const { attributes } = await bench.arrived(receiver, 'with attributes');
      must(
        attributes['event.id'] === 'evt-1',
        `event.id is evt-1, and ${JSON.stringify(attributes)} arrived`,
      );
    },
  },
  'names-the-service': {
    sentence:
      'The name and version of the service and the environment arrive, as far as the protocol carries them.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() => bench.emit('of a service'));
      const { name, version, environment } =
        (await bench.arrived(receiver, 'of a service')).service ?? {};
      must(
        name === undefined || name === about.serviceName,
        `the service is ${about.serviceName}, and ${name} arrived`,
      );
      must(
        version === undefined || version === about.serviceVersion,
        `the version is ${about.serviceVersion}, and ${version} arrived`,
      );
      const isEnvironment = environment === undefined || environment === about.environment;
      must(isEnvironment, `the environment is ${about.environment}, and ${environment} arrived`);
    },
  },
  'keeps-the-incoming-parent': {
    sentence: 'A span under the trace context of a message has that trace id and that parent.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() =>
        bench.emit('continued', bench.remote('sampled')),
      );
      const { traceId, parentSpanId = 'none' } = await bench.arrived(receiver, 'continued');
      must(
        traceId === remote.traceId,
        `the trace id of the message is ${remote.traceId}, that of the span ${traceId}`,
      );
      must(
        parentSpanId === remote.spanId,
        `the parent in the message is ${remote.spanId}, that of the span ${parentSpanId}`,
      );
    },
  },
  'nests-spans': {
    sentence: 'A span that is started while another is active is its child, also behind an await.',
    test: async (bench) => {
      const { receiver, result: outer } = await bench.trace(() => bench.nest('outer', 'inner'));
      const { traceId, parentSpanId = 'none' } = await bench.arrived(receiver, 'inner');
      must(
        traceId === outer.traceId,
        `the trace id of the outer span is ${outer.traceId}, that of the inner ${traceId}`,
      );
      must(
        parentSpanId === outer.spanId,
        `the outer span is ${outer.spanId}, and the parent of the inner is ${parentSpanId}`,
      );
    },
  },
  'samples-nothing-at-zero': {
    sentence: 'With a sample rate of 0, no trace that begins here is sent.',
    skip: withoutSampling,
    test: async (bench) => {
      const { receiver } = await bench.trace(
        () => bench.emitMany(50, 'unsampled'),
        sampling(bench.rig, 0),
      );
      await bench.stayedAway(receiver, 'unsampled');
    },
  },
  'samples-everything-at-one': {
    sentence: 'With a sample rate of 1, every trace that begins here is sent.',
    skip: withoutSampling,
    test: async (bench) => {
      const { receiver } = await bench.trace(
        () => bench.emitMany(50, 'span'),
        sampling(bench.rig, 1),
      );
      await bench.arrived(receiver, 'span', 50);
    },
  },
  'keeps-a-senders-yes': {
    sentence: 'A trace that its sender samples is sent, although the sample rate is 0.',
    needs: ['keeps-the-incoming-parent'],
    skip: withoutSampling,
    test: async (bench) => {
      const { receiver } = await bench.trace(
        () => bench.emit('wanted', bench.remote('sampled')),
        sampling(bench.rig, 0),
      );
      await bench.arrived(receiver, 'wanted');
    },
  },
  'keeps-a-senders-no': {
    sentence: 'A trace that its sender does not sample is not sent, although the sample rate is 1.',
    needs: ['keeps-the-incoming-parent'],
    skip: ({ ignoresASendersNo }) => ignoresASendersNo,
    test: async (bench) => {
      const { receiver } = await bench.trace(() =>
        bench.emit('unwanted', bench.remote('not sampled')),
      );
      await bench.stayedAway(receiver, 'unwanted');
    },
  },
};
