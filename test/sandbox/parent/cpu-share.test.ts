import { CpuShare, SHARE } from '#sandbox/parent/cpu-share';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('sandbox/parent/cpu-share');

const shares: CpuShare[] = [];
test.after.each(() => shares.splice(0).forEach((share) => share.end()));

/** A share with a simulated clock, and the signals sent to its process. */
function told() {
  const sent: string[] = [];
  let now = 1000;
  const share = new CpuShare((name) => sent.push(name));
  shares.push(share);
  share.begin(now);
  return {
    share,
    sent,
    now: () => now,
    /** Advances the time, with a turn every `everyMs`. */
    pass(ms: number, everyMs = 5) {
      for (const end = now + ms; now < end;) {
        now += everyMs;
        share.turn(now);
      }
    },
  };
}

test('a process gets its share, in turns of milliseconds', () => {
  const { share, sent, now, pass } = told();
  pass(3000);
  const runs = 1 - share.stoppedMs(now()) / 3000;
  assert.ok(Math.abs(runs - SHARE) < 0.01, `${runs}`);
  assert.equal(sent.slice(0, 4), ['SIGSTOP', 'SIGCONT', 'SIGSTOP', 'SIGCONT']);
  assert.ok(sent.length > 300, `${sent.length} turns`);
});

test('it gets its share also when turns are late, and after a long time in which nobody looked, no more than a few turns at once', () => {
  const { share, sent, now, pass } = told();
  for (let n = 0; n < 300; n++) pass(n % 3 === 0 ? 17 : 6, n % 3 === 0 ? 17 : 6);
  const passed = now() - 1000;
  const runs = 1 - share.stoppedMs(now()) / passed;
  assert.ok(Math.abs(runs - SHARE) < 0.02, `${runs}`);

  while (sent.at(-1) !== 'SIGSTOP') pass(5);
  const before = sent.length;
  pass(1000, 1000);
  assert.equal(sent.slice(before), ['SIGCONT']);
  pass(45);
  assert.equal(
    sent.slice(before, before + 2),
    ['SIGCONT', 'SIGSTOP'],
    'a second of credit was not saved up',
  );
});

test('who had too much while nobody looked waits for it', () => {
  const { sent, pass } = told();
  pass(200, 200);
  assert.equal(sent, ['SIGSTOP']);
  pass(80);
  assert.equal(sent, ['SIGSTOP'], 'a third of 200 ms and more');
  pass(25);
  assert.is(sent[1], 'SIGCONT');
});

test('at the end it runs, and is signalled no more', () => {
  const { share, sent, now, pass } = told();
  while (sent.at(-1) !== 'SIGSTOP') pass(5);
  const stopped = share.stoppedMs(now());
  share.end(now() + 3);
  assert.is(sent.at(-1), 'SIGCONT');
  const { length } = sent;
  share.end(now() + 4);
  assert.is(sent.length, length);
  assert.is(share.stoppedMs(now() + 1000), stopped + 3);
  share.begin(now() + 1000);
  share.begin(now() + 1000);
  share.end(now() + 1001);
  assert.is(sent.length, length, 'one that is over before its turn costs no signal');
});

test.run();
