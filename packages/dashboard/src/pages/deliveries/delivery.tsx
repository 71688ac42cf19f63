import type { DeliveryAttempt, EventDelivery, SentEvent } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import {
  Badge,
  Code,
  Copyable,
  Facts,
  FullTime,
  Link,
  Loaded,
  Panel,
  Payload,
  ResourcePage,
  Tree,
} from '../../components/index.js';
import { headerLines } from '../../format/json.js';
import { bytes } from '../../format/number.js';
import { deliveryWords } from '../../portal/states.js';
import { isPortal } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { shellQuoted } from '../event-types/event-command.js';
import { Attempt, Comparison } from './attempt.js';
import { ResendButton } from './resend.js';

const LIVE_MS = 1_500;
const ENDED = ['success', 'failure', 'discarded'];

export default function DeliveryPage({ id }: PageProps) {
  const key = `delivery ${id}`;
  const resource = useResource(
    key,
    async (options) => {
      const delivery = await api().eventDeliveries.get(id, options);
      const { content: attempts } = await api().eventDeliveries.listDeliveryAttempts(id, options);
      return { delivery, attempts };
    },
    LIVE_MS,
  );
  const delivery = resource.data?.delivery;
  const event = useResource(delivery && `${key} event ${delivery.is_transformed}`, (options) =>
    api().eventDeliveries.getEvent(id, options),
  );
  return (
    <ResourcePage
      resource={resource}
      title={({ delivery: { event_metadata: it } }) => it.event_type ?? 'Delivery'}
      name="Delivery"
      list="Deliveries"
      actions={({ delivery: it }) => <ResendButton delivery={it} />}
    >
      {({ delivery: shown, attempts }) => (
        <div class="split">
          <div>
            <Panel
              title="Payload"
              actions={event.data && <span class="muted">{bytes(event.data.data_bytes)}</span>}
            >
              <Loaded resource={event} lines={5}>
                {(sent) => <SentPayload delivery={shown} event={sent} attempt={attempts[0]} />}
              </Loaded>
            </Panel>
            <Panel title={`Attempts (${attempts.length})`}>
              {attempts.length === 0 && <p class="muted">No request has been sent yet.</p>}
              {attempts.length > 1 && <Comparison attempts={attempts} />}
              <div class="attempts">
                {attempts.map((attempt, index) => (
                  <Attempt key={attempt.uid} attempt={attempt} isOpen={index === 0} />
                ))}
              </div>
            </Panel>
          </div>
          <aside>
            <Panel title="Delivery" actions={<Badge status={shown.status} />}>
              <DeliveryFacts delivery={shown} />
            </Panel>
          </aside>
        </div>
      )}
    </ResourcePage>
  );
}

/** Signature and authentication are not stored. */
function SentPayload({
  delivery,
  event,
  attempt,
}: {
  delivery: EventDelivery;
  event: SentEvent;
  attempt: DeliveryAttempt | undefined;
}) {
  const url = attempt?.url ?? delivery.endpoint_metadata.url ?? '';
  const headers = requestHeaders(delivery, event, attempt);
  if (event.data === null)
    return (
      <p class="muted">
        {isPortal.value
          ? 'The message is not ready yet.'
          : 'The function of the subscription has not run yet, so there is no payload.'}
      </p>
    );
  const body = JSON.stringify(event.data);
  return (
    <Payload
      label="Payload format"
      forms={[
        ['Tree', <Tree label="Request data" value={event.data} />],
        ['Raw', <Code label="Request body" text={body} />],
        [
          'Headers',
          <Code isRaw label="Request headers" text={`POST ${url}\n${headerLines(headers)}`} />,
        ],
        ['curl', <Code isRaw label="Command" text={requestCommand(url, headers, body)} />],
      ]}
    />
  );
}

function DeliveryFacts({ delivery }: { delivery: EventDelivery }) {
  const {
    endpoint_metadata: endpoint,
    status,
    reason,
    next_attempt_at: next,
    recovered,
  } = delivery;
  const times = recovered === 1 ? 'time' : 'times';
  const isInPortal = isPortal.value;
  return (
    <Facts
      rows={{
        Endpoint: <EndpointLink delivery={delivery} />,
        URL: endpoint.url && <span class="mono">{endpoint.url}</span>,
        ...(isInPortal ? { State: deliveryWords(delivery).sentence } : { Reason: reason }),
        'Next attempt': next ? (
          <FullTime at={next} />
        ) : (
          !ENDED.includes(status) && !isInPortal && waiting(delivery)
        ),
        Event: isInPortal ? (
          <span class="mono">{delivery.event_id}</span>
        ) : (
          <Link to={`/events/${delivery.event_id}`}>{delivery.event_id}</Link>
        ),
        Function: delivery.is_transformed && !isInPortal && <Transformed delivery={delivery} />,
        'Delivery ID': <Copyable text={delivery.uid} what="delivery ID" />,
        'Message time': <FullTime at={delivery.occurred_at} />,
        'Last updated': <FullTime at={delivery.updated_at} />,
        ...(recovered > 0 &&
          (isInPortal
            ? {
                Repeated:
                  'Your server may have received it more than once, with the same webhook-id.',
              }
            : {
                Recovered: `${recovered} ${times} after an agent died; the endpoint may have received duplicates`,
              })),
      }}
    />
  );
}

function EndpointLink({ delivery: { endpoint_metadata: it } }: { delivery: EventDelivery }) {
  const name = it.name ?? it.uid;
  return (
    <>
      {it.status === 'deleted' ? name : <Link to={`/endpoints/${it.uid}`}>{name}</Link>}
      {it.status && it.status !== 'active' && (
        <>
          {' '}
          <Badge status={it.status} />
        </>
      )}
    </>
  );
}

/** Requests show the output of the function and not the event data. */
function Transformed({ delivery: { subscription_id: id } }: { delivery: EventDelivery }) {
  return (
    <>
      <Link to={`/subscriptions/${id}/function`}>The function of the subscription</Link> transformed
      the data. The payload shows the result.
    </>
  );
}

function waiting({ endpoint_metadata: endpoint, status }: EventDelivery): string {
  if (endpoint.status === 'paused') return 'held until the paused endpoint is activated';
  return status === 'processing' ? 'in progress' : 'as soon as an agent is available';
}

/** Without authentication, which is not stored. */
function requestHeaders(
  { uid, occurred_at: occurredAt }: EventDelivery,
  { headers, data_bytes: length }: SentEvent,
  attempt: DeliveryAttempt | undefined,
): Readonly<Record<string, string>> {
  const at = new Date(attempt?.requested_at ?? occurredAt);
  return {
    'content-type': 'application/json',
    ...headers,
    'content-length': String(length),
    'webhook-id': uid,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': '(computed from the secrets, not stored)',
  };
}

/** Sends the request, unsigned. */
function requestCommand(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): string {
  const sent = Object.entries(headers)
    .filter(([name]) => name !== 'content-length' && name !== 'webhook-signature')
    .map(([name, value]) => `  -H ${shellQuoted(`${name}: ${value}`)} \\\n`);
  return `curl ${shellQuoted(url)} \\\n${sent.join('')}  -d ${shellQuoted(body)}`;
}
