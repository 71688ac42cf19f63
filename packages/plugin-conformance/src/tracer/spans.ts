import { must } from '../run/judge.js';
import type { TracerRig } from './rig.js';
import { about, emit, remote, under, type TracerRule } from './bench.js';

const samples = ({ rig }: { rig: TracerRig }) => (rig.sampled === undefined ? 'the rig has no `sampled`' : undefined);

/** What arrives, and what must not. */
export const spanRules: readonly TracerRule[] = [
  {
    name: 'sends-spans',
    sentence: 'A span that has ended arrives with its name and its ids, without waiting for `close`.',
    judge: async ({ api, open, start, arrived }) => {
      const receiver = await open();
      await start(receiver.settings);
      const sent = emit(api, 'alone');
      const came = await arrived(receiver, 'alone');
      must(came.traceId === sent.traceId, `its trace id is ${sent.traceId}, and ${came.traceId} arrived`);
      must(came.spanId === sent.spanId, `its span id is ${sent.spanId}, and ${came.spanId} arrived`);
    },
  },
  {
    name: 'sends-attributes',
    sentence: 'The attributes of a span arrive with it.',
    needs: ['sends-spans'],
    judge: async ({ api, open, start, arrived }) => {
      const receiver = await open();
      const started = await start(receiver.settings);
      emit(api, 'with attributes');
      await started.close();
      const { attributes } = await arrived(receiver, 'with attributes');
      must(attributes['event.id'] === 'evt-1', `event.id is evt-1, and ${JSON.stringify(attributes)} arrived`);
    },
  },
  {
    name: 'names-the-service',
    sentence: 'The name and version of the service and the environment arrive, those of them that the protocol carries.',
    needs: ['sends-spans'],
    judge: async ({ api, open, start, arrived }) => {
      const receiver = await open();
      const started = await start(receiver.settings);
      emit(api, 'of a service');
      await started.close();
      const { service = {} } = await arrived(receiver, 'of a service');
      const { name, version, environment } = service;
      must(name === undefined || name === about.serviceName, `the service is ${about.serviceName}, and ${name} arrived`);
      must(version === undefined || version === about.serviceVersion, `the version is ${about.serviceVersion}, and ${version} arrived`);
      must(
        environment === undefined || environment === about.environment,
        `the environment is ${about.environment}, and ${environment} arrived`,
      );
    },
  },
  {
    name: 'keeps-the-incoming-parent',
    sentence: 'A span under a trace context that came with a message has that trace id and that parent.',
    needs: ['sends-spans'],
    judge: async ({ api, open, start, arrived }) => {
      const receiver = await open();
      const started = await start(receiver.settings);
      emit(api, 'continued', under(api, 'sampled'));
      await started.close();
      const came = await arrived(receiver, 'continued');
      must(came.traceId === remote.traceId, `the trace that came is ${remote.traceId}, and the span is in ${came.traceId}`);
      must(
        came.parentSpanId === remote.spanId,
        `the parent that came is ${remote.spanId}, and the span has ${came.parentSpanId ?? 'none'}`,
      );
    },
  },
  {
    name: 'nests-spans',
    sentence: 'A span that is started while another is active is its child, also behind an await.',
    needs: ['sends-spans'],
    judge: async ({ api, open, start, arrived }) => {
      const receiver = await open();
      const started = await start(receiver.settings);
      const parent = await api.trace.getTracer('conformance').startActiveSpan('outer', async (span) => {
        await new Promise((resolve) => setTimeout(resolve, 10));
        emit(api, 'inner', api.context.active());
        span.end();
        return span.spanContext();
      });
      await started.close();
      const inner = await arrived(receiver, 'inner');
      must(inner.traceId === parent.traceId, `the outer span is in the trace ${parent.traceId}, the inner in ${inner.traceId}`);
      must(
        inner.parentSpanId === parent.spanId,
        `the outer span is ${parent.spanId}, and the parent of the inner is ${inner.parentSpanId ?? 'none'}`,
      );
    },
  },
  {
    name: 'samples-nothing-at-zero',
    sentence: 'With a share of 0, no trace that begins here is sent.',
    needs: ['sends-spans'],
    lacks: samples,
    judge: async ({ api, rig, open, start, stayedAway }) => {
      const receiver = await open();
      const started = await start(rig.sampled?.(receiver.settings, 0) ?? {});
      for (let at = 0; at < 50; at++) emit(api, 'unsampled');
      await started.close();
      await stayedAway(receiver, 'unsampled');
    },
  },
  {
    name: 'samples-everything-at-one',
    sentence: 'With a share of 1, every trace that begins here is sent.',
    needs: ['sends-spans'],
    lacks: samples,
    judge: async ({ api, rig, open, start, arrived }) => {
      const receiver = await open();
      const started = await start(rig.sampled?.(receiver.settings, 1) ?? {});
      for (let at = 0; at < 50; at++) emit(api, `span ${at}`);
      await started.close();
      for (let at = 0; at < 50; at++) await arrived(receiver, `span ${at}`);
    },
  },
  {
    name: 'keeps-a-senders-yes',
    sentence: 'A trace that its sender samples is sent, although the share is 0.',
    needs: ['keeps-the-incoming-parent'],
    lacks: samples,
    judge: async ({ api, rig, open, start, arrived }) => {
      const receiver = await open();
      const started = await start(rig.sampled?.(receiver.settings, 0) ?? {});
      emit(api, 'wanted', under(api, 'sampled'));
      await started.close();
      await arrived(receiver, 'wanted');
    },
  },
  {
    name: 'keeps-a-senders-no',
    sentence: 'A trace that its sender does not sample is not sent, although everything is sampled here.',
    needs: ['keeps-the-incoming-parent'],
    lacks: ({ rig }) => rig.ignoresASendersNo,
    judge: async ({ api, open, start, stayedAway }) => {
      const receiver = await open();
      const started = await start(receiver.settings);
      emit(api, 'unwanted', under(api, 'not sampled'));
      await started.close();
      await stayedAway(receiver, 'unwanted');
    },
  },
];
