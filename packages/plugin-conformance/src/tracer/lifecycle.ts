import { mustBeMendable, mustKeep, toldBy } from '../run/error-checks.js';
import { leavesNothing } from '../run/open-handles.js';
import { must } from '../run/judge.js';
import { emit, type Stage, type TracerRule } from './bench.js';

const WARNINGS_MAX = 3;
const CLOSING_PATIENCE = 3;

/** How a tracer starts, ends and gives way. */
export const lifeRules: readonly TracerRule[] = [
  {
    name: 'flushes-at-close',
    sentence: 'Spans that ended right before `close` have arrived when it has resolved, hundreds of them too.',
    needs: ['sends-spans'],
    judge: async ({ api, open, start, arrived }) => {
      const receiver = await open();
      const started = await start(receiver.settings);
      for (let at = 0; at < 300; at++) emit(api, `last ${at}`);
      await started.close();
      for (let at = 0; at < 300; at++) await arrived(receiver, `last ${at}`);
    },
  },
  {
    name: 'gives-the-provider-back',
    sentence: 'After `close` no provider is registered: spans go nowhere, and another one can be registered.',
    needs: ['sends-spans'],
    judge: async ({ open, start, records }) => {
      const receiver = await open();
      const started = await start(receiver.settings);
      must(records(), 'after `start` spans go nowhere');
      await started.close();
      must(!records(), 'after `close` spans are still recorded');
    },
  },
  {
    name: 'starts-again',
    sentence: 'After `close` it can be started again, and spans and their children arrive.',
    needs: ['gives-the-provider-back'],
    judge: async ({ api, open, start, arrived }) => {
      const [first, second] = [await open(), await open()];
      await (await start(first.settings)).close();
      const again = await start(second.settings);
      const parent = await api.trace.getTracer('conformance').startActiveSpan('outer again', async (span) => {
        await Promise.resolve();
        emit(api, 'inner again', api.context.active());
        span.end();
        return span.spanContext();
      });
      await again.close();
      must((await arrived(second, 'inner again')).parentSpanId === parent.spanId, 'after a second start, spans do not know their parents');
    },
  },
  {
    name: 'refuses-a-second-tracer',
    sentence: 'When another provider is registered already, `start` rejects with a `PluginError` and leaves that one in its place.',
    needs: ['sends-spans'],
    judge: async ({ api, open, start }) => {
      const receiver = await open();
      const tracer = { startSpan: () => ({ ...silentSpan, mine: true }), startActiveSpan: () => undefined };
      api.trace.disable();
      must(api.trace.setGlobalTracerProvider({ getTracer: () => tracer }), 'the rig itself keeps a provider registered');
      const refused = await start(receiver.settings).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      const there = 'mine' in api.trace.getTracer('another').startSpan('any');
      must(there, 'another provider was registered, and `start` took its place');
      must(refused !== undefined, 'another provider was registered, and `start` resolved; its spans go nowhere');
      mustBeMendable(refused.error, '`start`');
    },
  },
  {
    name: 'refuses-wrong-settings',
    sentence: '`start` rejects with a `PluginError` when settings are wrong, tells no secret, and registers nothing.',
    needs: ['gives-the-provider-back'],
    lacks: ({ rig }) => (rig.wrong === undefined ? 'the rig has no `wrong`' : undefined),
    judge: async ({ rig, start, records }) => {
      const { settings, secrets = [] } = rig.wrong ?? { settings: {} };
      const refused = await start(settings).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      must(refused !== undefined, '`start` resolved with settings that are wrong');
      mustBeMendable(refused.error, '`start`');
      mustKeep(secrets, toldBy(refused.error), 'the error of `start`');
      must(!records(), 'settings were refused, and a provider is registered');
    },
  },
  {
    name: 'closes-in-time-when-nobody-listens',
    sentence: 'When the back end is away, `start` works, `close` takes five seconds at most.',
    needs: ['sends-spans'],
    lacks: ({ rig }) => (rig.away === undefined ? 'the rig has no `away`' : undefined),
    judge: async ({ api, rig, start }) => {
      const started = await start(rig.away ?? {});
      for (let at = 0; at < 50; at++) emit(api, 'lost');
      await started.close();
    },
  },
  {
    name: 'tells-when-spans-are-lost',
    sentence: 'When the back end is away, the log is warned of it, and not for every span.',
    needs: ['closes-in-time-when-nobody-listens'],
    lacks: ({ rig }) => (rig.away === undefined ? 'the rig has no `away`' : undefined),
    judge: async ({ api, rig, start }) => {
      const started = await start(rig.away ?? {});
      for (let at = 0; at < 50; at++) emit(api, 'lost');
      await started.close();
      must(started.warnings.length > 0, 'the back end is away, and the log is not told');
      must(
        started.warnings.length <= WARNINGS_MAX,
        `50 spans were lost, and the log was warned ${started.warnings.length} times: ${started.warnings.slice(0, 3).join(' · ')}`,
      );
    },
  },
  {
    name: 'closes-what-it-opened',
    sentence: 'When `close` has resolved, nothing that the tracer opened keeps the process alive.',
    needs: ['starts-again'],
    judge: async (stage) => {
      const receivers = [await stage.open(), await stage.open(), await stage.open()];
      const [warmUp, ...counted] = receivers.map(
        ({ settings }) =>
          () =>
            traceOnce(stage, settings),
      );
      await warmUp?.();
      await leavesNothing(async () => {
        for (const again of counted) await again();
      }, stage.withinMs * CLOSING_PATIENCE);
    },
  },
  {
    name: 'lets-nothing-escape',
    sentence: 'In all of this no rejection went without a handler, and no error reached the process.',
    judge: async ({ escapes }) => {
      // A rejection counts as unhandled one turn later.
      await new Promise((resolve) => setTimeout(resolve, 50));
      must(escapes.caught.length === 0, escapes.caught.slice(0, 3).join('\n'));
    },
  },
];

const silentSpan = {
  spanContext: () => ({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
  isRecording: () => false,
  end: () => {},
};

async function traceOnce({ api, start }: Stage, settings: Record<string, unknown>): Promise<void> {
  const started = await start(settings);
  emit(api, 'once');
  await started.close();
}
