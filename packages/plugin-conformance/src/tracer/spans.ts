import { must } from '../run/rule.js';
import { about, remote, type Receiver, type TracerRig, type TracerRule } from './bench.js';

const withoutSampling = ({ sampled }: TracerRig) =>
  sampled === undefined ? 'the rig has no `sampled`' : undefined;
const sampling =
  ({ sampled }: TracerRig, rate: 0 | 1) =>
  ({ settings }: Receiver) =>
    sampled!(settings, rate);

function mustArrive(what: string, sent: string, came: unknown): void {
  must(came === sent, `${what} is ${sent}, and ${String(came)} arrived`);
}

export const spanRules: Readonly<Record<string, TracerRule>> = {
  'sends-spans': {
    sentence:
      'A span that has ended arrives with its name and its ids, without waiting for `close`.',
    test: async (bench) => {
      const receiver = await bench.open();
      await bench.start(receiver.settings);
      const sent = bench.emit('alone');
      const came = await bench.arrived(receiver, 'alone');
      mustArrive('its trace id', sent.traceId, came.traceId);
      mustArrive('its span id', sent.spanId, came.spanId);
    },
  },
  'sends-attributes': {
    sentence: 'The attributes of a span arrive with it.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() => bench.emit('with attributes'));
      const { attributes } = await bench.arrived(receiver, 'with attributes');
      mustArrive('event.id', 'evt-1', attributes['event.id']);
    },
  },
  'names-the-service': {
    sentence:
      'The name and version of the service and the environment arrive, as far as the protocol carries them.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() => bench.emit('of a service'));
      const { serviceName, serviceVersion, environment } = about;
      const { service = {} } = await bench.arrived(receiver, 'of a service');
      mustArrive('the service', serviceName, service.name ?? serviceName);
      mustArrive('the version', serviceVersion, service.version ?? serviceVersion);
      mustArrive('the environment', environment, service.environment ?? environment);
    },
  },
  'keeps-the-incoming-parent': {
    sentence: 'A span under the trace context of a message has that trace id and that parent.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() =>
        bench.emit('continued', bench.remote('sampled')),
      );
      const { traceId, parentSpanId = 'none' } = await bench.arrived(receiver, 'continued');
      mustArrive('the trace id of the message', remote.traceId, traceId);
      mustArrive('the parent in the message', remote.spanId, parentSpanId);
    },
  },
  'nests-spans': {
    sentence: 'A span that is started while another is active is its child, also behind an await.',
    test: async (bench) => {
      const { receiver, result: outer } = await bench.trace(() => bench.nest('outer', 'inner'));
      const { traceId, parentSpanId = 'none' } = await bench.arrived(receiver, 'inner');
      mustArrive('the trace id of the outer span', outer.traceId, traceId);
      mustArrive('the parent of the inner span', outer.spanId, parentSpanId);
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
