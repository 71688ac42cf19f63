import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LinePrinter } from '#cli/dev/line-printer';
import { until } from '../../support/until.js';

const printer = suite('cli/dev/line-printer');

printer('a few lines are printed as they come, a flood is counted, and the next second begins anew', async () => {
  const printed: string[] = [];
  const lines = new LinePrinter((line) => printed.push(line));
  lines.line('first');
  assert.equal(printed, ['first']);
  for (let k = 1; k < 1000; k++) lines.line(`line ${k}`);
  assert.is(printed.length, 20);
  await until('the count of the rest', () => printed.at(-1) === '  … and 980 more in this second');
  lines.line('later');
  assert.is(printed.at(-1), 'later');
  lines.close();
});

printer('closing tells what was left out', () => {
  const printed: string[] = [];
  const lines = new LinePrinter((line) => printed.push(line));
  for (let k = 0; k < 25; k++) lines.line(String(k));
  lines.close();
  assert.is(printed.at(-1), '  … and 5 more in this second');
});

printer.run();
