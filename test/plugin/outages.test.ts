import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { outages } from '@gateway/plugin';
import { logged } from '../support/receiving.js';

const told = suite('plugin/outages');

told('an outage is one line when it begins and one when it is over, with what was lost', () => {
  const { sentences, lines, log } = logged();
  const { failed, worked, dropped } = outages(log, { tracer: 'toy' });
  worked();
  for (let at = 0; at < 100; at++) failed('connection refused', 10);
  dropped(5);
  worked();
  worked();
  assert.equal(sentences, [
    'Spans do not arrive and are lost; a line follows when they arrive again. connection refused',
    'Spans arrive again.',
  ]);
  assert.match(lines[1] ?? '', '{"tracer":"toy","lost":1005,"away_seconds":0}');
});

told('a back end that comes and goes is told of once a minute', () => {
  const { sentences, log } = logged();
  const { failed, worked } = outages(log, {});
  for (let at = 0; at < 50; at++) {
    failed('busy');
    worked();
  }
  assert.is(sentences.length, 2);
});

told('spans that find no place are told of once a minute, with their number', () => {
  const { lines, log } = logged();
  const { dropped } = outages(log, {});
  for (let at = 0; at < 50; at++) dropped(7);
  assert.equal(lines, ['{"lost":7} More spans end than the back end takes, and some are lost.']);
});

told.run();
