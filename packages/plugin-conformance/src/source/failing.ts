import { settles } from '@gateway/plugin';
import { mustBeMendable, mustKeep, toldBy } from '../run/error-checks.js';
import { must } from '../run/judge.js';
import type { SourceRig } from './rig.js';
import { endOf, type Run } from './plugin-run.js';
import { numbers, texts, type SourceRule, type Stage } from './bench.js';

/** Of `withinMs`, which is ten seconds by default: what the retries of a client library may take, and what nothing but an abort may. */
const REFUSES = 2;
const NOTICES = 6;
const OBEYS = 0.3;

const lacking =
  (what: 'wrongCredentials' | 'missing' | 'silent') =>
  ({ rig }: { rig: SourceRig }): string | undefined =>
    rig[what] === undefined ? `the rig has no \`${what}\`` : undefined;

/** `check`, and how a plugin says that it cannot read. */
export const refusingRules: readonly SourceRule[] = [
  {
    name: 'check-accepts-what-can-be-read',
    sentence: '`check` resolves for a connection that can be read.',
    judge: async ({ open, check }) => {
      const place = await open();
      try {
        await check(place.connection);
      } catch (error) {
        must(false, `\`check\` refused a connection that can be read: ${toldBy(error)}`);
      }
    },
  },
  {
    name: 'check-takes-no-message',
    sentence: '`check` leaves every message where it is, for `run`.',
    needs: ['check-accepts-what-can-be-read', 'reads-every-message'],
    judge: async ({ open, check, run, until }) => {
      const place = await open();
      await place.send(texts(numbers(5)));
      await check(place.connection);
      must((await place.unacknowledged()) === 5, '`check` has acknowledged a message');
      const reading = run(place.connection);
      await until(
        () => new Set(reading.bodies()).size === 5,
        () => `after a \`check\`, ${new Set(reading.bodies()).size} of 5 messages were handed over${endOf(reading)}`,
      );
    },
  },
  {
    name: 'check-tells-of-a-missing-place',
    sentence: '`check` rejects within ten seconds with a `PluginError` when the queue or topic does not exist.',
    needs: ['check-accepts-what-can-be-read'],
    lacks: lacking('missing'),
    judge: async (stage) => mustBeMendable(await refusalOf(stage, 'missing'), '`check`'),
  },
  {
    name: 'check-refuses-wrong-credentials',
    sentence: '`check` rejects within ten seconds with a `PluginError` when the credentials are wrong.',
    needs: ['check-accepts-what-can-be-read'],
    lacks: lacking('wrongCredentials'),
    judge: async (stage) => mustBeMendable(await refusalOf(stage, 'wrongCredentials'), '`check`'),
  },
  {
    name: 'run-refuses-wrong-credentials',
    sentence: '`run` rejects with a `PluginError` when the credentials are wrong; it neither hangs nor reads.',
    needs: ['reads-every-message'],
    lacks: lacking('wrongCredentials'),
    judge: async ({ rig, run, withinMs }) => {
      const reading = run(rig.wrongCredentials?.connection ?? {});
      await rejected(reading, withinMs * REFUSES, 'with wrong credentials');
    },
  },
  {
    name: 'keeps-secrets-to-itself',
    sentence: 'No secret of the connection is in an error, in its causes, in a report to health or in the log.',
    needs: ['reads-every-message'],
    lacks: lacking('wrongCredentials'),
    judge: async ({ rig, check, run, withinMs }) => {
      const { connection, secrets } = rig.wrongCredentials ?? { connection: {}, secrets: [] };
      const error = await check(connection).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      mustKeep(secrets, toldBy(error), 'the error of `check`');
      const reading = run(connection);
      await settles(reading.over, withinMs * REFUSES);
      mustKeep(secrets, toldBy((reading.end() ?? {}).error), 'the error of `run`');
      mustKeep(secrets, reading.states.map(({ reason }) => reason ?? '').join(' '), 'a report to health');
      mustKeep(secrets, reading.logged.join('\n'), 'the log');
    },
  },
  {
    name: 'check-gives-up-in-time',
    sentence: '`check` rejects within ten seconds with a `PluginError` when nothing answers.',
    needs: ['check-accepts-what-can-be-read'],
    lacks: lacking('silent'),
    judge: async (stage) => mustBeMendable(await refusalOf(stage, 'silent'), '`check`'),
  },
  {
    name: 'check-obeys-its-signal',
    sentence: '`check` rejects at once when its signal aborts.',
    needs: ['check-accepts-what-can-be-read'],
    lacks: lacking('silent'),
    judge: async ({ rig, check, withinMs }) => {
      const abort = new AbortController();
      const checked = check(rig.silent?.connection ?? {}, abort.signal);
      checked.catch(() => {});
      // While it connects.
      await settles(checked, 200);
      abort.abort(new Error('the caller has gone'));
      must(await settles(checked, withinMs * OBEYS), `\`check\` goes on ${(withinMs * OBEYS) / 1000} s after its signal aborted`);
    },
  },
  {
    name: 'ends-while-it-connects',
    sentence: '`run` ends within ten seconds when its signal aborts before anything has answered.',
    needs: ['reads-every-message'],
    lacks: lacking('silent'),
    judge: async ({ rig, run, withinMs }) => {
      const reading = run(rig.silent?.connection ?? {});
      await settles(reading.over, 200);
      reading.abort();
      must(await settles(reading.over, withinMs), `\`run\` still connects ${withinMs / 1000} s after its signal aborted`);
    },
  },
  {
    name: 'tells-when-the-broker-is-away',
    sentence:
      'When the broker goes away, `run` rejects with a `PluginError` within a minute, or reports `failing` and why; what settles afterwards does no harm.',
    needs: ['reports-reading', 'hands-over-without-waiting'],
    lacks: ({ rig }) => (rig.openBreakable === undefined ? 'the rig has no `openBreakable`' : undefined),
    judge: async ({ openBreakable, run, until, withinMs }) => {
      const place = await openBreakable();
      await place.send(texts(['held']));
      const reading = run(place.connection, { answer: () => 'hold' });
      await until(
        () => reading.held().length > 0,
        () => `the message was not handed over${endOf(reading)}`,
      );
      try {
        await place.cut();
        await until(
          () => reading.end() !== undefined || reading.states.at(-1)?.state === 'failing',
          () => 'the broker was taken away, and `run` neither rejected nor reported `failing`',
          withinMs * NOTICES,
        );
        reading.settle('accepted');
        const ended = reading.end();
        if (ended) {
          must('error' in ended, 'the broker was taken away, and `run` resolved as if it had been asked to');
          mustBeMendable(ended.error, '`run`');
        } else must(Boolean(reading.states.at(-1)?.reason?.trim()), '`failing` was reported without a reason');
      } finally {
        await place.heal();
      }
    },
  },
  {
    name: 'reads-again-when-the-broker-is-back',
    sentence: 'When the broker is back, the same run or the next one reads on: what was not acknowledged, and what is new.',
    needs: ['tells-when-the-broker-is-away', 'gives-a-refused-message-again'],
    lacks: ({ rig }) => (rig.openBreakable === undefined ? 'the rig has no `openBreakable`' : undefined),
    judge: async ({ openBreakable, run, until, withinMs }) => {
      const place = await openBreakable();
      await place.send(texts(['before']));
      const sourceId = 'source-1';
      const runs = [run(place.connection, { sourceId, answer: () => 'hold' })];
      const last = () => runs.at(-1) as Run;
      await until(
        () => last().held().length > 0,
        () => `the message was not handed over${endOf(last())}`,
      );
      await place.cut();
      await until(
        () => last().end() !== undefined || last().states.at(-1)?.state === 'failing',
        () => 'the broker was taken away, and nobody was told',
        withinMs * NOTICES,
      );
      last().settle('later');
      await place.heal();
      await place.send(texts(['after']));
      const read = () => new Set(runs.flatMap((it) => it.handed.filter(({ outcome }) => outcome === 'accepted')).map(({ body }) => body));
      await until(
        () => {
          // As an agent does it.
          if (last().end()) runs.push(run(place.connection, { sourceId }));
          else last().settle('accepted');
          return read().size === 2;
        },
        () =>
          `the broker was back, and ${['before', 'after'].filter((body) => !read().has(body)).join(' and ')} did not come${endOf(last())}`,
        withinMs * NOTICES,
      );
    },
  },
];

/** The error of `check` for one of the connections that must fail. */
async function refusalOf({ rig, check }: Stage, which: 'wrongCredentials' | 'missing' | 'silent'): Promise<unknown> {
  try {
    await check(rig[which]?.connection ?? {});
  } catch (error) {
    return error;
  }
  const nothingIsRight = {
    wrongCredentials: 'credentials that are wrong',
    missing: 'a place that does not exist',
    silent: 'a broker that never answers',
  };
  must(false, `\`check\` accepted ${nothingIsRight[which]}`);
}

async function rejected(reading: Run, withinMs: number, circumstances: string): Promise<void> {
  must(await settles(reading.over, withinMs), `${circumstances}, \`run\` has not rejected after ${withinMs / 1000} s`);
  const ended = reading.end() ?? {};
  must('error' in ended, `${circumstances}, \`run\` resolved`);
  mustBeMendable(ended.error, '`run`');
}
