import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { formatDuration, parseDuration } from '#cli/app/flag-values';

const duration = suite('cli/app/flag-values');

duration('integers with units are read, in any order', () => {
  const expected = {
    '1h30m': 5_400_000,
    '30m1h': 5_400_000,
    '1ms1m1s': 61_001,
    '5m5m': 600_000,
    '500ms': 500,
    '2d': 172_800_000,
    '1m1s1ms': 61_001,
    '90s': 90_000,
    '0h1s': 1_000,
  };
  for (const [text, ms] of Object.entries(expected))
    assert.is(parseDuration('--time', text), ms, text);
});

duration('everything else is wrong use, and named with its flag', () => {
  for (const text of [
    '',
    '1',
    'h',
    '1.5h',
    '-1h',
    '1h30',
    '30 1h',
    '1h 30m',
    '1w',
    '0s',
    '99999999999999999d',
  ]) {
    assert.throws(
      () => parseDuration('--time', text),
      (error: { code?: string; message: string }) =>
        error.code === 'wrong_use' &&
        error.message === `--time must be a duration, not ${JSON.stringify(text)}`,
      text,
    );
  }
});

duration('a duration is told in its two largest units', () => {
  const expected = {
    0: '0ms',
    999: '999ms',
    1_000: '1s',
    61_001: '1m1s',
    1_001: '1s',
    90_061_000: '1d1h',
    86_460_000: '1d1m',
  };
  for (const [ms, text] of Object.entries(expected))
    assert.is(formatDuration(Number(ms)), text, ms);
});

duration.run();
