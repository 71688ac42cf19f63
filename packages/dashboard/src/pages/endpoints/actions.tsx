import {
  type DeliveryAttempt,
  type Endpoint,
  type EventDelivery,
  GatewayApiError,
} from '@gateway/client';
import { useId, useState } from 'preact/hooks';
import { api, type ReadOptions, useAction, useDraft, useResource } from '../../api/index.js';
import {
  ActionButton,
  Badge,
  Button,
  Code,
  DeleteButton,
  Dialog,
  Field,
  fieldError,
  Link,
  Problem,
  TextArea,
} from '../../components/index.js';
import { objectOf } from '../../format/json.js';
import { milliseconds } from '../../format/time.js';
import { isPortal, query, setQuery } from '../../router/location.js';
import { mayManage, maySend } from '../../session/session.js';
import { answerOf, OwnerProblem } from '../deliveries/attempt.js';

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

const LIVE_MS = 500;
const TEST_TYPE = 'gateway.test';

function TestEvent({
  endpoint: { uid, name, status },
  onClose,
}: {
  endpoint: Endpoint;
  onClose: () => void;
}) {
  const { values, set } = useDraft({ type: TEST_TYPE, data: '' });
  const [deliveryId, setDeliveryId] = useState<string>();
  const types = useResource('event types to choose from', async (options) => {
    const { content } = await api().eventTypes.list({ perPage: 100 }, options).page();
    return content.map((it) => it.name);
  });
  const data = objectOf(values.data);
  const send = useAction(async () => {
    setDeliveryId(undefined);
    if (data.problem !== undefined) return;
    const given = values.data.trim() === '' ? {} : { data: data.value };
    const sent = await api().endpoints.sendTest(uid, { event_type: values.type.trim(), ...given });
    setDeliveryId(sent.event_delivery_id);
  });
  const list = useId();
  return (
    <Dialog
      title={`Test ${name}`}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>Close</Button>
          <Button
            kind="main"
            isRunning={send.isRunning}
            isDisabled={data.problem !== undefined}
            onPress={send.run}
          >
            {deliveryId ? 'Send another' : 'Send'}
          </Button>
        </>
      }
    >
      {status === 'paused' && (
        <p>The endpoint is paused. The event is held until the endpoint is activated.</p>
      )}
      <Field
        label="Event type"
        hint="If the event type has an example, the test sends it."
        error={fieldError(send.error, 'event_type')}
      >
        {(wiring) => (
          <input
            {...wiring}
            class="mono"
            list={list}
            value={values.type}
            onInput={(event) => set('type')(event.currentTarget.value)}
          />
        )}
      </Field>
      <datalist id={list}>
        {[TEST_TYPE, ...(types.data ?? [])].map((it) => (
          <option key={it} value={it} />
        ))}
      </datalist>
      <TextArea
        label="Data"
        isMono
        rows={3}
        hint="JSON. Leave empty to send the example, or a greeting."
        value={values.data}
        onChange={set('data')}
        error={data.problem ?? fieldError(send.error, 'data')}
      />
      {send.error && <Problem error={send.error} />}
      {deliveryId && <Outcome key={deliveryId} deliveryId={deliveryId} />}
    </Dialog>
  );
}

interface FirstAttempt {
  readonly delivery: EventDelivery;
  readonly attempt: DeliveryAttempt | undefined;
}

/** Undefined until the delivery exists, a moment after the event was accepted. */
async function find(id: string, options: ReadOptions): Promise<FirstAttempt | undefined> {
  try {
    const delivery = await api().eventDeliveries.get(id, options);
    const { content } = await api().eventDeliveries.listDeliveryAttempts(id, options);
    return { delivery, attempt: content[0] };
  } catch (error) {
    if (error instanceof GatewayApiError && error.status === 404) return undefined;
    throw error;
  }
}

function Outcome({ deliveryId }: { deliveryId: string }) {
  const { data, error } = useResource(
    `test ${deliveryId}`,
    (options) => find(deliveryId, options),
    LIVE_MS,
  );
  const { delivery, attempt } = data ?? {};
  return (
    <section class="test-outcome" aria-label="Outcome">
      {error && <Problem error={error} />}
      <p role="status">
        {attempt ? (
          <>
            <Badge status={attempt.status ? 'success' : 'failure'} label={answerOf(attempt)} />{' '}
            {attempt.status ? 'Delivered in' : 'Failed after'} {milliseconds(attempt.duration_ms)}
            .{' '}
          </>
        ) : (
          <>{delivery ? 'Waiting for the response… ' : 'Sent. Waiting to be routed… '}</>
        )}
        {delivery && <Link to={`/deliveries/${deliveryId}`}>View delivery</Link>}
      </p>
      {isPortal.value
        ? attempt && <OwnerProblem attempt={attempt} />
        : delivery?.reason && <p>{delivery.reason}</p>}
      {attempt?.response_body && <Code label="Response body" text={attempt.response_body} />}
    </section>
  );
}
