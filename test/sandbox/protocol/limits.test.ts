import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { settings } from '#core/config/settings';
import { Sandbox } from '@gateway/sandbox';
import { completeLimits, DEFAULT_LIMITS, LIMIT_BOUNDS, type SandboxLimits } from '#sandbox/protocol/limits';
import { within } from '../../support/until.js';

const limits = suite('sandbox/protocol/limits');

const names = Object.keys(LIMIT_BOUNDS) as (keyof SandboxLimits)[];
const row: Readonly<Record<keyof SandboxLimits, keyof typeof settings>> = {
  deadlineMs: 'transform.deadline_ms',
  memoryMb: 'transform.memory_mb',
  maxOutputBytes: 'transform.max_output_bytes',
  processes: 'transform.processes',
};

/** All limits at one end. */
const at = (end: 'min' | 'max') => Object.fromEntries(names.map((name) => [name, LIMIT_BOUNDS[name][end]])) as unknown as SandboxLimits;

for (const name of names) {
  limits(`${name} and the setting ${row[name]} have the same bounds and the same default`, () => {
    const { min, max, default: value } = settings[row[name]] as { min?: number; max?: number; default?: number };
    assert.equal({ min, max }, LIMIT_BOUNDS[name]);
    assert.is(value, DEFAULT_LIMITS[name]);
  });

  limits(`${name} beyond its bounds is refused with its name`, () => {
    const { min, max } = LIMIT_BOUNDS[name];
    for (const value of [min, max]) assert.is(completeLimits({ [name]: value })[name], value);
    for (const value of [min - 1, max + 1, min + 0.5, Number.NaN]) {
      assert.throws(() => new Sandbox({ [name]: value }), new RegExp(`Sandbox limit ${name} is ${value}: give .* ${min} to ${max}`));
    }
  });
}

/** The first call of a process may take longer than the least deadline when the machine is busy, so that one is left out. */
for (const [end, given] of [
  ['least', { ...at('min'), deadlineMs: DEFAULT_LIMITS.deadlineMs }],
  ['largest', at('max')],
] as const) {
  limits(`functions run under the ${end} limits`, async () => {
    const sandbox = new Sandbox(given);
    try {
      const text = 'function transform() { return {}; }';
      const [result] = await within(sandbox.run({ key: 'empty', text }, ['{}']), 30_000, 'an answer');
      assert.is(result?.kind, 'object', JSON.stringify(result));
    } finally {
      await sandbox.close();
    }
  });
}

limits('an output as large as the largest limit allows comes back whole', async () => {
  const sandbox = new Sandbox({ ...at('max'), processes: 1 });
  const length = LIMIT_BOUNDS.maxOutputBytes.max - '{"a":""}'.length;
  const text = `function transform({ length }) { return { a: 'x'.repeat(length) }; }`;
  try {
    const run = (chars: number) => within(sandbox.run({ key: 'large', text }, [JSON.stringify({ length: chars })]), 60_000, 'an answer');
    const [whole] = await run(length);
    assert.is(whole?.kind === 'object' && whole.json.length, LIMIT_BOUNDS.maxOutputBytes.max);
    const [over] = await run(length + 1);
    assert.is(over?.kind === 'refused' && over.code, 'output_too_large');
  } finally {
    await sandbox.close();
  }
});

limits.run();
