import type { Event, EventExplanation } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import {
  ActionButton,
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
  Tabs,
  tabValue,
  Tree,
} from '../../components/index.js';
import { headerLines } from '../../format/json.js';
import { bytes } from '../../format/number.js';
import { capital } from '../../format/text.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { eventCommand } from '../event-types/event-command.js';
import { BytesAs, FORMS } from '../preview/bytes.js';
import { EventBadge } from './event-badge.js';
import { Timeline } from './timeline.js';

const LIVE_MS = 2_000;

export default function EventPage({ id }: PageProps) {
  const event = useResource(`event ${id}`, (options) => api().events.get(id, options));
  const explained = useResource(
    event.data && `event ${id} explained`,
    (options) => api().events.explain(id, {}, options),
    LIVE_MS,
  );
  const messageBytes = explained.data?.event.message_bytes ?? null;
  const { status, outcome = null } = explained.data?.event ?? event.data ?? {};
  return (
    <ResourcePage
      resource={event}
      title={({ event_type: type }) => type}
      name="Event"
      list="Events"
      actions={() => status !== 'pending' && <ReplayButton id={id} />}
    >
      {(data) => (
        <div class="split">
          <div>
            <Panel title="Payload" actions={<span class="muted">{bytes(data.data_bytes)}</span>}>
              <EventPayload event={data} messageBytes={messageBytes} />
            </Panel>
            <Panel
              title="Timeline"
              actions={status && <EventBadge status={status} outcome={outcome} />}
            >
              <Loaded resource={explained} lines={5}>
                {(explanation) => <Timeline explanation={explanation} />}
              </Loaded>
            </Panel>
            <Panel title="Routing">
              <Loaded resource={explained}>
                {(explanation) => <Routing explanation={explanation} />}
              </Loaded>
            </Panel>
          </div>
          <aside>
            <Panel title="Event">
              <EventFacts event={data} sourceName={explained.data?.event.source_name ?? null} />
            </Panel>
          </aside>
        </div>
      )}
    </ResourcePage>
  );
}

function EventPayload({
  event: { uid, event_type: type, data, headers },
  messageBytes,
}: {
  event: Event;
  messageBytes: number | null;
}) {
  return (
    <Payload
      label="Payload format"
      forms={[
        ['Tree', <Tree label="Data" value={data} />],
        ['Raw', <Code label="Raw data" text={JSON.stringify(data)} />],
        Object.keys(headers).length > 0 && [
          'Headers',
          <Code isRaw label="Custom headers" text={headerLines(headers)} />,
        ],
        ['curl', <Code isRaw label="Command" text={eventCommand(type, data, headers)} />],
        messageBytes !== null && [`Message, ${bytes(messageBytes)}`, <Message eventId={uid} />],
      ]}
    />
  );
}

function EventFacts({ event, sourceName }: { event: Event; sourceName: string | null }) {
  const { source_id: source, message_type: kind, coordinates, idempotency_key: key } = event;
  return (
    <Facts
      rows={{
        'Event ID': <Copyable text={event.uid} what="event ID" />,
        Source:
          source === null ? (
            'the API'
          ) : (
            <Link to={`/sources/${source}`}>{sourceName ?? source}</Link>
          ),
        Coordinates: coordinates !== 'api' && <Copyable text={coordinates} what="coordinates" />,
        Key: event.message?.key && <Copyable text={event.message.key} what="key" />,
        Attributes: pairs(event.message?.attributes),
        Query: pairs(event.message?.query),
        'Message time': <FullTime at={event.occurred_at} />,
        'Message type': kind !== 'single' && kind,
        Endpoint: event.endpoint_id && (
          <Link to={`/endpoints/${event.endpoint_id}`}>{event.endpoint_id}</Link>
        ),
        Owner: event.owner_id,
        'Idempotency key': key && <Copyable text={key} what="idempotency key" />,
        Omitted: event.notes.length > 0 && event.notes.join('; '),
      }}
    />
  );
}

function pairs(values: Readonly<Record<string, string>> | undefined) {
  return values && <Code isRaw label="Values" text={headerLines(values)} />;
}

function Message({ eventId }: { eventId: string }) {
  const message = useResource(`event ${eventId} message`, (options) =>
    api().events.getMessage(eventId, options),
  );
  return (
    <Loaded resource={message}>
      {({ raw, raw_encoding, headers }) =>
        raw === null ? (
          <p>The message is not stored because it exceeds 64 KB with its headers.</p>
        ) : (
          <>
            <Tabs name="message" label="Message format" tabs={FORMS} />
            <BytesAs form={tabValue('message', FORMS)} raw={{ raw, raw_encoding }} />
            {Object.keys(headers).length > 0 && (
              <Code isRaw label="Message headers" text={headerLines(headers)} />
            )}
          </>
        )
      }
    </Loaded>
  );
}

/** More subscriptions without a match are folded. */
const FEW = 3;

function Routing({ explanation }: { explanation: EventExplanation }) {
  const {
    event,
    rule,
    rule_sentence: sentence,
    meant,
    subscriptions,
    subscription_count: count,
    now,
  } = explanation;
  const matched = subscriptions.filter(({ matches }) => matches);
  const missed = subscriptions.filter(({ matches }) => !matches);
  return (
    <div class="routing">
      <p>{capital(sentence)}</p>
      {event.sentence && event.outcome !== 'routed' && <p>{capital(event.sentence)}</p>}
      {meant && (
        <p>
          Did you mean <code>{meant}</code>?
        </p>
      )}
      {now && event.status !== 'pending' && (
        <p class="muted">
          With the current configuration, the event would go to{' '}
          {now.endpoint_count === 1 ? 'one endpoint' : `${now.endpoint_count} endpoints`}
          {now.endpoint_count === 0 ? `. ${capital(now.sentence)}` : '.'}
        </p>
      )}
      {rule === 'subscriptions' && count === 0 && (
        <p>
          This project has no subscriptions, so its events reach no endpoint.{' '}
          <Link to="/subscriptions/new">Create a subscription</Link>
        </p>
      )}
      {rule === 'subscriptions' && (
        <>
          <RoutingRows rows={matched} event={event} />
          {missed.length > 0 && (
            <details class="more-fields" open={matched.length === 0 || missed.length <= FEW}>
              <summary>
                {missed.length === 1
                  ? 'One subscription does'
                  : `${missed.length} subscriptions do`}{' '}
                not match
              </summary>
              <RoutingRows rows={missed} event={event} />
            </details>
          )}
          {count > subscriptions.length && (
            <p class="muted">
              {subscriptions.length} of {count} subscriptions are shown.
            </p>
          )}
        </>
      )}
    </div>
  );
}

function RoutingRows({
  rows,
  event,
}: {
  rows: EventExplanation['subscriptions'];
  event: EventExplanation['event'];
}) {
  return (
    <ul class="routing-rows">
      {rows.map((it) => (
        <li key={it.uid}>
          <Badge
            status={it.matches ? 'success' : 'none'}
            label={it.matches ? 'matches' : 'no match'}
          />
          <span>
            <Link to={`/subscriptions/${it.uid}?event=${event.uid}`}>{it.name}</Link>
            {it.mismatch && <span class="muted"> {it.mismatch.sentence}</span>}
            {it.changed_since && <span class="muted"> (changed since the event was accepted)</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}

function ReplayButton({ id }: { id: string }) {
  if (!may('member')) return null;
  return (
    <ActionButton
      keys="r"
      work={() => api().events.replay(id)}
      told="Event replayed. Endpoints without a delivery of it get one."
    >
      Replay
    </ActionButton>
  );
}
