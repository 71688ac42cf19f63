import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { AGENT_IN_FLIGHT_BYTES, IN_FLIGHT_BYTES, InFlight } from '@gateway/plugin';

const inFlight = suite('plugin/in-flight');

const message = (bytes = 10) => ({ body: new Uint8Array(bytes), headers: {} });

/** Opens messages while there is room. Returns how many, and settles them all. */
function filled(reader: InFlight, bytes?: number): { count: number; settle(): void } {
  const open: (() => void)[] = [];
  while (reader.hasRoom) open.push(reader.open(message(bytes)));
  return { count: open.length, settle: () => open.splice(0).forEach((settled) => settled()) };
}

inFlight('a reader has as many small messages as a window of bytes allows', () => {
  const reader = new InFlight(Infinity);
  const { count, settle } = filled(reader);
  assert.is(count, 4096);
  settle();
  assert.is(reader.size, 0);
  const large = filled(reader, 1024 * 1024);
  assert.is(large.count, IN_FLIGHT_BYTES / 1024 / 1024);
  large.settle();
  const few = filled(new InFlight(3));
  assert.is(few.count, 3);
  few.settle();
});

inFlight('a reader goes on while others have all that an agent may hold', () => {
  const others = Array.from({ length: AGENT_IN_FLIGHT_BYTES / IN_FLIGHT_BYTES }, () =>
    filled(new InFlight(Infinity)),
  );
  const reader = new InFlight(Infinity);
  const small = filled(reader);
  assert.is(small.count, 64);
  small.settle();
  const large = filled(reader, 1024 * 1024);
  assert.is(large.count, 1);
  large.settle();
  for (const { settle } of others) settle();
  const after = filled(reader);
  assert.is(after.count, 4096);
  after.settle();
});

inFlight.run();
