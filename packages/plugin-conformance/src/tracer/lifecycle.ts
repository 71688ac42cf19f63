import { everythingIn, must, mustNotTell, mustReject } from '../run/rule.js';
import { leavesNothingOpen, letsNothingEscape } from '../run/process.js';
import type { TracerBench, TracerRig, TracerRule } from './bench.js';

const WARNINGS_MAX = 3;

const withoutAway = ({ away }: TracerRig) =>
  away === undefined ? 'the rig has no `away`' : undefined;

export const lifecycleRules: Readonly<Record<string, TracerRule>> = {
  'flushes-at-close': {
    sentence:
      'Spans that ended right before `close`, hundreds of them, have arrived when it has resolved.',
    test: async (bench) => {
      const { receiver } = await bench.trace(() => bench.emitMany(300, 'last'));
      await bench.arrived(receiver, 'last', 300);
    },
  },
  'gives-the-provider-back': {
    sentence:
      'After `close` no provider is registered: spans are not recorded, and another provider can be registered.',
    test: async (bench) => {
      await bench.trace(() => must(bench.records(), 'after `start` spans are not recorded'));
      must(!bench.records(), 'after `close` spans are still recorded');
    },
  },
  'starts-again': {
    sentence: 'After `close` it can be started again, and spans and their children arrive.',
    needs: ['gives-the-provider-back'],
    test: async (bench) => {
      await bench.trace(() => {});
      const { receiver, result: outer } = await bench.trace(() =>
        bench.nest('outer again', 'inner again'),
      );
      const { parentSpanId } = await bench.arrived(receiver, 'inner again');
      must(parentSpanId === outer.spanId, 'after a second start, spans do not know their parents');
    },
  },
  'refuses-a-second-tracer': {
    sentence:
      'When another provider is registered, `start` rejects with a `PluginError` and leaves that provider registered.',
    test: async (bench) => {
      const { trace } = bench.api;
      const receiver = await bench.open();
      const span = Object.assign(trace.wrapSpanContext(bench.api.INVALID_SPAN_CONTEXT), {
        mine: true,
      });
      const tracer = { startSpan: () => span, startActiveSpan: () => undefined as never };
      trace.disable();
      must(
        trace.setGlobalTracerProvider({ getTracer: () => tracer }),
        'the rig itself keeps a provider registered',
      );
      await mustReject(
        bench.start(receiver.settings),
        '`start`',
        'another provider was registered, and `start` resolved; one of the two receives no spans',
      );
      must(
        'mine' in trace.getTracer('another').startSpan('any'),
        'another provider was registered, and `start` replaced it',
      );
    },
  },
  'refuses-wrong-settings': {
    sentence:
      'When settings are wrong, `start` rejects with a `PluginError`, tells no secret, and registers nothing.',
    needs: ['gives-the-provider-back'],
    skip: ({ wrong }) => (wrong === undefined ? 'the rig has no `wrong`' : undefined),
    test: async (bench) => {
      const { settings, secrets = [] } = bench.rig.wrong!;
      const error = await mustReject(
        bench.start(settings),
        '`start`',
        '`start` resolved with wrong settings',
      );
      mustNotTell(secrets, everythingIn(error), 'the error of `start`');
      must(!bench.records(), '`start` rejected, and a provider is registered');
    },
  },
  'closes-in-time-when-nobody-listens': {
    sentence:
      'When the back end is away, `start` resolves, and `close` takes at most five seconds.',
    skip: withoutAway,
    test: async (bench) => void (await loseSpans(bench)),
  },
  'tells-when-spans-are-lost': {
    sentence: 'When the back end is away, the log gets a warning, and not one for every span.',
    needs: ['closes-in-time-when-nobody-listens'],
    skip: withoutAway,
    test: async (bench) => {
      const warnings = await loseSpans(bench);
      must(warnings.length > 0, 'the back end is away, and the log has no warning');
      const some = warnings.slice(0, 3).join(' · ');
      must(
        warnings.length <= WARNINGS_MAX,
        `50 spans were lost, and the log has ${warnings.length} warnings: ${some}`,
      );
    },
  },
  'closes-what-it-opened': {
    sentence: 'When `close` has resolved, nothing that the tracer opened keeps the process alive.',
    needs: ['starts-again'],
    test: async (bench) => {
      await leavesNothingOpen(
        async () => void (await bench.trace(() => bench.emit('once'))),
        bench.withinMs,
      );
    },
  },
  'lets-nothing-escape': letsNothingEscape,
};

/** Emits 50 spans to a backend that does not listen, and returns the logged warnings. */
async function loseSpans(bench: TracerBench): Promise<readonly string[]> {
  const started = await bench.start(bench.rig.away!);
  bench.emitMany(50, 'lost');
  await started.close();
  return started.warnings;
}
