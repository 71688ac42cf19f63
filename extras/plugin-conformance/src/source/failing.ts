import { settles } from '@gateway/plugin';
import { randomUUID } from 'node:crypto';
import {
  eventually,
  everythingIn,
  must,
  mustHaveFix,
  mustNotTell,
  mustReject,
  reasonOf,
} from '../run/rule.js';
import { numbers, texts, type SourceRule } from './bench.js';
import type { PluginRun } from './plugin-run.js';
import type { SourceRig } from './rig.js';

/** Multiples of `withinMs` (10 s) for a client library's retries, and for noticing a dead broker. */
const REJECTS = 2;
const NOTICES = 6;

const without =
  (ability: 'wrongCredentials' | 'missing' | 'silent' | 'openBreakable') => (rig: SourceRig) =>
    rig[ability] === undefined ? `the rig has no \`${ability}\`` : undefined;

export const failingRules: Readonly<Record<string, SourceRule>> = {
  'check-accepts-what-can-be-read': {
    sentence:
      '`check` resolves for a connection that can be read, and leaves every message for `run`.',
    test: async (bench) => {
      const place = await bench.open({ messages: texts(numbers(5)) });
      await bench.check(place.connection).catch((error: unknown) => {
        must(false, `\`check\` rejected a connection that can be read: ${reasonOf(error)}`);
      });
      must((await place.unacknowledged()) === 5, '`check` has acknowledged a message');
      await bench.run(place.connection).untilRead(5, 'after a `check`, ');
    },
  },
  'check-tells-of-a-missing-place': {
    sentence:
      '`check` rejects within ten seconds with a `PluginError` when the queue or topic does not exist.',
    needs: ['check-accepts-what-can-be-read'],
    skip: without('missing'),
    test: async (bench) => {
      const checked = bench.check(bench.rig.missing!.connection);
      await mustReject(checked, '`check`', 'accepted a queue or topic that does not exist');
    },
  },
  'refuses-wrong-credentials': {
    sentence:
      'With wrong credentials `check` and `run` reject with a `PluginError`, and no secret is in an error, its causes and their properties, a report to health or the log.',
    needs: ['check-accepts-what-can-be-read'],
    skip: without('wrongCredentials'),
    test: async (bench) => {
      const { connection, secrets } = bench.rig.wrongCredentials!;
      const checked = bench.check(connection);
      const error = await mustReject(checked, '`check`', 'accepted wrong credentials');
      mustNotTell(secrets, everythingIn(error), 'the error of `check`');
      const run = bench.run(connection);
      const withinMs = bench.withinMs * REJECTS;
      must(
        await settles(run.over, withinMs),
        `with wrong credentials, \`run\` has not rejected after ${withinMs / 1000} s`,
      );
      must('error' in run.end!, 'with wrong credentials, `run` resolved');
      mustHaveFix(run.end.error, '`run`');
      mustNotTell(secrets, everythingIn(run.end.error), 'the error of `run`');
      const reasons = run.states.map(({ reason }) => reason ?? '').join(' ');
      mustNotTell(secrets, reasons, 'a report to health');
      mustNotTell(secrets, run.logged.join('\n'), 'the log');
    },
  },
  'gives-up-when-nothing-answers': {
    sentence:
      'When nothing answers, `check` rejects within ten seconds with a `PluginError`, and `run` ends within ten seconds after its signal aborted.',
    needs: ['check-accepts-what-can-be-read'],
    skip: without('silent'),
    test: async (bench) => {
      const { connection } = bench.rig.silent!;
      const checked = bench.check(connection);
      await mustReject(checked, '`check`', 'accepted a broker that never answers');
      const run = bench.run(connection);
      await settles(run.over, 200);
      run.abort();
      must(
        await settles(run.over, bench.withinMs),
        `\`run\` still connects ${bench.withinMs / 1000} s after its signal aborted`,
      );
    },
  },
  'survives-an-outage': {
    sentence:
      'When the broker goes away, `run` rejects with a `PluginError` within a minute, or reports `failing` and why; when it is back, the same run or the next one hands over what was not acknowledged, and what is new.',
    needs: ['acknowledges-what-settled-and-nothing-else'],
    skip: without('openBreakable'),
    test: async (bench) => {
      const place = await bench.openBreakable(texts(['accepted', 'refused']));
      const sourceId = randomUUID();
      const first = bench.run(place.connection, { sourceId, answer: () => 'hold' });
      await first.untilHeld(2);
      await place.cut();
      const withinMs = bench.withinMs * NOTICES;
      await first.until(
        () =>
          !first.end &&
          first.states.at(-1)?.state !== 'failing' &&
          'the broker went away, and `run` neither rejected nor reported `failing`',
        withinMs,
      );
      mustTellWhy(first);
      first.settle('accepted', ({ body }) => body === 'accepted');
      first.settle('later');
      await place.heal();
      await place.send(texts(['new']));
      const runs = [first];
      const missing = () =>
        ['refused', 'new'].filter((body) => !runs.some((run) => run.hasAccepted(body)));
      await eventually(() => {
        const last = runs.at(-1)!;
        // Like an agent, restart a run that ended.
        if (last.end) runs.push(bench.run(place.connection, { sourceId }));
        else last.settle('accepted');
        return (
          missing().length > 0 &&
          `the broker was back, and the ${missing().join(' and the ')} message did not come${last.ended()}`
        );
      }, withinMs);
    },
  },
};

function mustTellWhy({ end, states }: PluginRun): void {
  if (!end)
    return must(Boolean(states.at(-1)?.reason?.trim()), '`failing` was reported without a reason');
  must('error' in end, 'the broker went away, and `run` resolved as if its signal had aborted');
  mustHaveFix(end.error, '`run`');
}
