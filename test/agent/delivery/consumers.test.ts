import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { consumersOf } from '#agent/delivery/consumers';

const consumers = suite('agent/delivery/consumers');
const GIB = 2 ** 30;

consumers('the setting counts whatever the machine is; 0 is what cores and memory suggest, and never none', () => {
  const small = { cores: 1, memoryBytes: GIB / 4 };
  assert.is(consumersOf(7, small), 7);
  assert.is(consumersOf(0, { cores: 2, memoryBytes: 16 * GIB }), 500);
  assert.is(consumersOf(0, { cores: 8, memoryBytes: 16 * GIB }), 2_000);
  assert.is(consumersOf(0, small), 128, 'memory bounds it');
  assert.is(consumersOf(0, { cores: 1, memoryBytes: 1 }), 1);
});

consumers.run();
