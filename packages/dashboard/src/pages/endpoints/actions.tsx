import type { Endpoint } from '@gateway/client';
import { api } from '../../api/index.js';
import { ActionButton, Button, DeleteButton } from '../../components/index.js';
import { query, setQuery } from '../../router/location.js';
import { mayManage, maySend } from '../../session/session.js';
import { TestEvent } from './test-event.js';

export function EndpointActions({ endpoint }: { endpoint: Endpoint }) {
  const { uid, name, status } = endpoint;
  const isActive = status === 'active';
  const isTesting = query.value.has('test');
  const test = () => setQuery({ test: '1' });
  if (!maySend()) return null;
  return (
    <>
      <Button keys="t" onPress={test}>
        Send test event…
      </Button>
      {mayManage() && (
        <>
          <ActionButton
            keys="p"
            kind={isActive ? 'plain' : 'main'}
            work={() => (isActive ? api().endpoints.pause(uid) : api().endpoints.activate(uid))}
            told={
              isActive
                ? `${name} is paused. Its deliveries are held.`
                : `${name} is active. Held deliveries are being sent.`
            }
          >
            {isActive ? 'Pause' : 'Activate'}
          </ActionButton>
          <DeleteButton name={name} list="/endpoints" work={() => api().endpoints.delete(uid)}>
            <p>
              This deletes the endpoint's subscriptions and discards its waiting deliveries. Past
              deliveries stay in the log.
            </p>
            {isActive && (
              <p>
                To stop deliveries temporarily, pause the endpoint instead: its deliveries are held,
                not lost.
              </p>
            )}
          </DeleteButton>
        </>
      )}
      {isTesting && (
        <TestEvent
          endpoint={endpoint}
          onClose={() => setQuery({ test: undefined }, { replace: true })}
        />
      )}
    </>
  );
}
