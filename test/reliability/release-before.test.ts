// deadline: 900 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { installGateway } from '../support/installed.js';
import { kafka } from '../support/kafka.js';
import { FIRST, installReleaseBefore } from '../support/release-before.js';
import { upgradeAndBack, type Waits } from './rolling.js';

const releaseBefore = suite('reliability/release-before');

const broker = await kafka();
releaseBefore.after(() => broker.close());

/** The bound that docs/guides/deploy.md promises. */
const PROMISED_MS = 2_000;
/** A machine on which a computation takes so many times its processor time cannot tell. */
const STALLED = 1.8;
const RUNS = 3;

releaseBefore(
  'an upgrade of the release before and back, both installed from packages, loses and refuses nothing and lets nobody wait for more than 2 s',
  async () => {
    const old = await installReleaseBefore();
    const before = { bin: old.bin, isRolling: old.commit !== FIRST };
    const next = { bin: await installGateway(), isRolling: true };
    const isSlow = ({ post, request, delivery }: Waits) =>
      Math.max(post, request, delivery) > PROMISED_MS;
    for (let run = 1; ; run++) {
      const waits = await upgradeAndBack({ before, next }, broker);
      for (const it of waits) console.log(`    ${JSON.stringify(it)}`);
      const slow = waits.filter(isSlow);
      if (run < RUNS && slow.some(({ control }) => control > STALLED)) continue;
      assert.equal(slow, []);
      return;
    }
  },
);

releaseBefore.run();
