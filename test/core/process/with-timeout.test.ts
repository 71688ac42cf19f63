import { setTimeout as wait } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { networkReason } from '#core/errors/connection-errors';
import { withTimeout } from '#core/process/with-timeout';

const withTimeoutSuite = suite('core/process/with-timeout');

withTimeoutSuite('work that settles in time settles it', async () => {
  assert.is(await withTimeout(Promise.resolve(7), 1_000), 7);
  const error = await withTimeout(Promise.reject(new Error('broken')), 1_000).catch((it: unknown) => it);
  assert.is((error as Error).message, 'broken');
});

withTimeoutSuite('work that takes longer rejects with ETIMEDOUT, and what becomes of it goes unheard', async () => {
  const late = wait(30).then(() => Promise.reject(new Error('too late to matter')));
  const error = await withTimeout(late, 5, 'it was not done after 5 ms').catch((it: unknown) => it);
  assert.is((error as Error).message, 'it was not done after 5 ms');
  assert.is(networkReason(error), 'no answer in time');
  await wait(50);
});

withTimeoutSuite.run();
