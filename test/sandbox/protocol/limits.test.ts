import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { settings } from '#core/config/settings';
import { Sandbox } from '@gateway/sandbox';
import { DEFAULT_LIMITS, type SandboxLimits } from '#sandbox/protocol/protocol';
import { within } from '../../support/until.js';

const limits = suite('sandbox/protocol/limits');

const rows: Readonly<
  Record<
    keyof SandboxLimits,
    { readonly min: number; readonly max: number; readonly default: number }
  >
> = {
  deadlineMs: settings['transform.deadline_ms'],
  memoryMb: settings['transform.memory_mb'],
  maxOutputBytes: settings['transform.max_output_bytes'],
  processes: settings['transform.processes'],
};
const names = Object.keys(rows) as (keyof SandboxLimits)[];

/** All limits at one end of their ranges. */
const at = (end: 'min' | 'max') =>
  Object.fromEntries(names.map((name) => [name, rows[name][end]])) as unknown as SandboxLimits;

limits('the limits and their settings have the same defaults', () => {
  for (const name of names) assert.is(DEFAULT_LIMITS[name], rows[name].default, name);
});

/**
 * The first call of a process can exceed the minimum deadline on a busy machine, so that limit is
 * left out.
 */
for (const [end, given] of [
  ['least', { ...at('min'), deadlineMs: DEFAULT_LIMITS.deadlineMs }],
  ['largest', at('max')],
] as const) {
  limits(`functions run under the ${end} limits`, async () => {
    const sandbox = new Sandbox(given);
    try {
      const text = 'function transform() { return {}; }';
      const [result] = await within(
        sandbox.run({ key: 'empty', text }, ['{}']),
        30_000,
        'an answer',
      );
      assert.is(result?.kind, 'object', JSON.stringify(result));
    } finally {
      await sandbox.close();
    }
  });
}

limits('an output as large as the largest limit allows comes back whole', async () => {
  const sandbox = new Sandbox({ ...at('max'), processes: 1 });
  const length = rows.maxOutputBytes.max - '{"a":""}'.length;
  const text = `function transform({ length }) { return { a: 'x'.repeat(length) }; }`;
  try {
    const run = (chars: number) =>
      within(
        sandbox.run({ key: 'large', text }, [JSON.stringify({ length: chars })]),
        60_000,
        'an answer',
      );
    const [whole] = await run(length);
    assert.is(whole?.kind === 'object' && whole.json.length, rows.maxOutputBytes.max);
    const [over] = await run(length + 1);
    assert.is(over?.kind === 'refused' && over.code, 'output_too_large');
  } finally {
    await sandbox.close();
  }
});

limits.run();
