import type { Endpoint } from '@gateway/client';
import { api } from '../../api/client.js';
import { toast } from '../../components/feedback.js';
import { ActionButton, ConfirmButton } from '../../components/form.js';
import { Button } from '../../components/layout.js';
import { navigate, projectPath, query, setQuery } from '../../router/location.js';
import { mayManage, maySend } from '../../session/session.js';
import { TestEvent } from './test-event.js';

export function EndpointActions({
  endpoint,
  onChange,
}: {
  readonly endpoint: Endpoint;
  readonly onChange: () => void;
}) {
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
            work={async () => {
              await (isActive ? api().endpoints.pause(uid) : api().endpoints.activate(uid));
              toast(
                isActive
                  ? `${name} is paused. Its deliveries are held.`
                  : `${name} is active. Held deliveries are being sent.`,
              );
              onChange();
            }}
          >
            {isActive ? 'Pause' : 'Activate'}
          </ActionButton>
          <ConfirmButton
            label="Delete…"
            title={`Delete ${name}?`}
            verb="Delete"
            work={async () => {
              await api().endpoints.delete(uid);
              toast(`${name} was deleted.`);
              navigate(projectPath('/endpoints'));
            }}
          >
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
          </ConfirmButton>
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
