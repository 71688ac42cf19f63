import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Failures } from '#agent/notifications/failures';
import { Notifier } from '#agent/notifications/notifier';
import type { AttemptRecord } from '#store/deliveries/delivery-attempts';
import { agentConfig, keptLog } from '../running.js';

const failures = suite('agent/notifications/failures');

function attempt(endpointId: string, error: string | null = null, fields: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    projectId: 'p',
    endpointId,
    errorClass: error && 'status',
    error,
    httpStatus: 500,
    requestedAtMs: 1,
    ...fields,
  } as AttemptRecord;
}

/** A notifier without a database, and what it logged of failing endpoints. */
function notifier(threshold: number) {
  const { log, lines } = keptLog();
  const config = agentConfig('postgres://localhost:5432/none', { notifications: { endpoint_failures: threshold } });
  const it = new Notifier({ config, log, mailer: undefined } as unknown as ConstructorParameters<typeof Notifier>[0]);
  return { it, logged: () => lines.map(({ fields }) => fields) };
}

failures('an endpoint is due once, when as many attempts as the setting says have failed in a row', () => {
  const { it, logged } = notifier(3);
  it.recorded([attempt('a', 'one'), attempt('b', 'other'), attempt('a', 'two')]);
  assert.equal(logged(), []);
  it.recorded([attempt('a', 'three'), attempt('a', 'four')]);
  assert.equal(logged(), [{ project_id: 'p', endpoint_id: 'a', failures: 3, last_error: 'three' }]);
  it.tripped({ projectId: 'p', endpointId: 'a', isFirst: true, failures: 9, error: 'five' });
  assert.is(logged().length, 1);
});

failures('a success restarts the count, and a 410 does not count', () => {
  const { it, logged } = notifier(2);
  it.recorded([attempt('a', 'e'), attempt('a'), attempt('a', 'e'), attempt('a', 'gone', { httpStatus: 410 })]);
  assert.equal(logged(), []);
  it.recorded([attempt('a', 'e')]);
  assert.is(logged().length, 1);
});

failures('a circuit breaker that opens for the first time makes its endpoint due', () => {
  const { it, logged } = notifier(5);
  it.tripped({ projectId: 'p', endpointId: 'a', isFirst: false, failures: 9, error: 'e' });
  assert.equal(logged(), []);
  it.tripped({ projectId: 'p', endpointId: 'a', isFirst: true, failures: 3, error: 'e' });
  assert.equal(logged(), [{ project_id: 'p', endpoint_id: 'a', failures: 5, last_error: 'e' }]);
});

failures('a failure keeps the time of the first and the error of the last', () => {
  const it = new Failures();
  it.fail('p', 'a', 'one', 7);
  it.fail('p', 'a', 'two', 8);
  assert.equal(it.get('a'), { projectId: 'p', id: 'a', sinceMs: 7, failures: 2, error: 'two', isDue: false });
});

failures('what has an open notification recovers once, also when another agent raised it', () => {
  const it = new Failures();
  const failure = it.fail('p', 'a', 'e');
  it.needsNotification(failure);
  it.raised(failure);
  assert.equal([[...it.due.keys()], [...it.open]], [[], ['a']]);
  it.open.add('c');
  for (const id of ['a', 'a', 'b', 'c']) it.recover(id);
  assert.equal([it.get('a'), [...it.open], [...it.recovered]], [undefined, [], ['a', 'c']]);
});

failures('what recovers while its notification is raised ends it', () => {
  const it = new Failures();
  const failure = it.fail('p', 'a', 'e');
  it.needsNotification(failure);
  it.recover('a');
  it.raised(failure);
  assert.equal([[...it.due.keys()], [...it.open], [...it.recovered]], [[], [], ['a']]);
});

failures('what is forgotten is not due any more', () => {
  const it = new Failures();
  for (const id of ['a', 'b']) it.needsNotification(it.fail('p', id, 'e'));
  it.forget('a');
  assert.equal([...it.due.keys()], ['b']);
});

failures.run();
