import { settles } from '@gateway/plugin';
import {
  eventually,
  everythingIn,
  must,
  mustHaveFix,
  mustNotTell,
  mustReject,
  reasonOf,
} from '../run/rule.js';
import { numbers, texts, type SourceBench, type SourceRule } from './bench.js';
import type { PluginRun } from './plugin-run.js';
import type { SourceRig } from './rig.js';

/** Multiples of `withinMs` (10 s) for a client library's retries, and for noticing a dead broker. */
const REJECTS = 2;
const NOTICES = 6;

const failures = {
  wrongCredentials: 'wrong credentials',
  missing: 'a queue or topic that does not exist',
  silent: 'a broker that never answers',
} as const;
type FailingPlace = keyof typeof failures;

const without = (ability: FailingPlace | 'openBreakable') => (rig: SourceRig) =>
  rig[ability] === undefined ? `the rig has no \`${ability}\`` : undefined;

const checkRejects = (failing: FailingPlace): Pick<SourceRule, 'needs' | 'skip' | 'test'> => ({
  needs: ['check-accepts-what-can-be-read'],
  skip: without(failing),
  test: async (bench) => {
    await mustReject(
      bench.check(bench.rig[failing]!.connection),
      '`check`',
      `\`check\` accepted ${failures[failing]}`,
    );
  },
});

export const failingRules: Readonly<Record<string, SourceRule>> = {
  'check-accepts-what-can-be-read': {
    sentence: '`check` resolves for a connection that can be read.',
    needs: [],
    test: async (bench) => {
      const { connection } = await bench.open();
      await bench.check(connection).catch((error: unknown) => {
        must(false, `\`check\` rejected a connection that can be read: ${reasonOf(error)}`);
      });
    },
  },
  'check-takes-no-message': {
    sentence: '`check` leaves every message for `run`.',
    needs: ['check-accepts-what-can-be-read', 'reads-every-message'],
    test: async (bench) => {
      const place = await bench.open({ messages: texts(numbers(5)) });
      await bench.check(place.connection);
      must((await place.unacknowledged()) === 5, '`check` has acknowledged a message');
      await bench.run(place.connection).untilRead(5, 'after a `check`, ');
    },
  },
  'check-tells-of-a-missing-place': {
    sentence:
      '`check` rejects within ten seconds with a `PluginError` when the queue or topic does not exist.',
    ...checkRejects('missing'),
  },
  'check-refuses-wrong-credentials': {
    sentence:
      '`check` rejects within ten seconds with a `PluginError` when the credentials are wrong.',
    ...checkRejects('wrongCredentials'),
  },
  'run-refuses-wrong-credentials': {
    sentence:
      '`run` rejects with a `PluginError` when the credentials are wrong; it neither hangs nor reads.',
    skip: without('wrongCredentials'),
    test: async (bench) => {
      const run = bench.run(bench.rig.wrongCredentials!.connection);
      const withinMs = bench.withinMs * REJECTS;
      must(
        await settles(run.over, withinMs),
        `with wrong credentials, \`run\` has not rejected after ${withinMs / 1000} s`,
      );
      must('error' in run.end!, 'with wrong credentials, `run` resolved');
      mustHaveFix(run.end.error, '`run`');
    },
  },
  'keeps-secrets-to-itself': {
    sentence:
      'No secret of the connection is in an error, its causes and their properties, a report to health or the log.',
    skip: without('wrongCredentials'),
    test: async (bench) => {
      const { connection, secrets } = bench.rig.wrongCredentials!;
      await bench
        .check(connection)
        .catch((error: unknown) =>
          mustNotTell(secrets, everythingIn(error), 'the error of `check`'),
        );
      const run = bench.run(connection);
      await settles(run.over, bench.withinMs * REJECTS);
      mustNotTell(secrets, everythingIn(run.end?.error), 'the error of `run`');
      mustNotTell(
        secrets,
        run.states.map(({ reason }) => reason ?? '').join(' '),
        'a report to health',
      );
      mustNotTell(secrets, run.logged.join('\n'), 'the log');
    },
  },
  'check-gives-up-in-time': {
    sentence: '`check` rejects within ten seconds with a `PluginError` when nothing answers.',
    ...checkRejects('silent'),
  },
  'ends-while-it-connects': {
    sentence:
      '`run` ends within ten seconds when its signal aborts before the broker has answered.',
    skip: without('silent'),
    test: async (bench) => {
      const run = bench.run(bench.rig.silent!.connection);
      await settles(run.over, 200);
      run.abort();
      must(
        await settles(run.over, bench.withinMs),
        `\`run\` still connects ${bench.withinMs / 1000} s after its signal aborted`,
      );
    },
  },
  'tells-when-the-broker-is-away': {
    sentence:
      'When the broker goes away, `run` rejects with a `PluginError` within a minute, or reports `failing` and why; what settles afterwards does no harm.',
    needs: ['reports-reading', 'hands-over-without-waiting'],
    skip: without('openBreakable'),
    test: async (bench) => {
      const place = await bench.openBreakable(texts(['held']));
      const run = bench.run(place.connection, { answer: () => 'hold' });
      await run.untilHeld();
      await place.cut();
      await untilFailing(bench, run);
      run.settle('accepted');
      if (run.end) {
        must(
          'error' in run.end,
          'the broker went away, and `run` resolved as if its signal had aborted',
        );
        mustHaveFix(run.end.error, '`run`');
      } else
        must(Boolean(run.states.at(-1)?.reason?.trim()), '`failing` was reported without a reason');
    },
  },
  'reads-again-when-the-broker-is-back': {
    sentence:
      'When the broker is back, the same run or the next one hands over what was not acknowledged, and what is new.',
    needs: ['tells-when-the-broker-is-away', 'gives-a-refused-message-again'],
    skip: without('openBreakable'),
    test: async (bench) => {
      const place = await bench.openBreakable(texts(['before']));
      const sourceId = 'source-1';
      let last = bench.run(place.connection, { sourceId, answer: () => 'hold' });
      const runs = [last];
      await last.untilHeld();
      await place.cut();
      await untilFailing(bench, last);
      last.settle('later');
      await place.heal();
      await place.send(texts(['after']));
      const missing = () =>
        ['before', 'after'].filter(
          (body) =>
            !runs.some(({ handed }) =>
              handed.some((it) => it.body === body && it.outcome === 'accepted'),
            ),
        );
      await eventually(() => {
        // Like an agent, restart a run that ended.
        if (last.end) runs.push((last = bench.run(place.connection, { sourceId })));
        else last.settle('accepted');
        return (
          missing().length > 0 &&
          `the broker was back, and ${missing().join(' and ')} did not come${last.ended()}`
        );
      }, bench.withinMs * NOTICES);
    },
  },
};

function untilFailing({ withinMs }: SourceBench, run: PluginRun): Promise<void> {
  const isFailing = () => run.end !== undefined || run.states.at(-1)?.state === 'failing';
  return run.until(
    () => !isFailing() && 'the broker went away, and `run` neither rejected nor reported `failing`',
    withinMs * NOTICES,
  );
}
