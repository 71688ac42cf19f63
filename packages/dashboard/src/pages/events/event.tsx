import type { Event, EventExplanation, EventMessage } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Badge, Code, Copyable, Facts, FullTime } from '../../components/data.js';
import { Loaded } from '../../components/feedback.js';
import { Page, Panel, Tabs, tabValue } from '../../components/layout.js';
import { Payload, Tree } from '../../components/payload.js';
import { headerLines } from '../../format/json.js';
import { bytes } from '../../format/number.js';
import { capital } from '../../format/text.js';
import { projectHref } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { eventCommand } from '../event-types/event-command.js';
import { BytesAs, FORMS } from '../preview/bytes.js';
import { EventBadge } from './event-badge.js';
import { ReplayButton } from './replay.js';
import { Timeline } from './timeline.js';

const LIVE_MS = 2_000;

export default function EventPage({ params: { id = '' } }: PageProps) {
  const event = useResource(`event ${id}`, (signal) => api().events.get(id, { signal }));
  const explained = useResource(
    event.data && `event ${id} explained`,
    (signal) => api().events.explain(id, {}, { signal }),
    { everyMs: LIVE_MS },
  );
  const messageBytes = explained.data?.event.message_bytes ?? null;
  const { status, outcome = null } = explained.data?.event ?? event.data ?? {};
  return (
    <Page
      title={event.data?.event_type ?? 'Event'}
      above={<a href={projectHref('/events')}>Events</a>}
      actions={
        event.data && status !== 'pending' && <ReplayButton id={id} onDone={explained.refresh} />
      }
    >
      <Loaded resource={event} lines={12}>
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
      </Loaded>
    </Page>
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
  const { source_id: source, message_type: kind } = event;
  return (
    <Facts
      rows={[
        ['Event ID', <Copyable text={event.uid} what="event ID" />],
        [
          'Source',
          source === null ? (
            'the API'
          ) : (
            <a href={projectHref(`/sources/${source}`)}>{sourceName ?? source}</a>
          ),
        ],
        [
          'Coordinates',
          event.coordinates === 'api' ? null : (
            <Copyable text={event.coordinates} what="coordinates" />
          ),
        ],
        ['Message time', <FullTime at={event.occurred_at} />],
        ['Message type', kind === 'single' ? null : kind],
        [
          'Endpoint',
          event.endpoint_id && (
            <a href={projectHref(`/endpoints/${event.endpoint_id}`)}>{event.endpoint_id}</a>
          ),
        ],
        ['Owner', event.owner_id],
        [
          'Idempotency key',
          event.idempotency_key && <Copyable text={event.idempotency_key} what="idempotency key" />,
        ],
        ['Omitted', event.notes.length === 0 ? null : event.notes.join('; ')],
      ]}
    />
  );
}

function Message({ eventId }: { eventId: string }) {
  const message = useResource(`event ${eventId} message`, (signal) =>
    api().events.getMessage(eventId, { signal }),
  );
  return <Loaded resource={message}>{(data) => <Kept message={data} />}</Loaded>;
}

function Kept({ message: { raw, raw_encoding, headers } }: { message: EventMessage }) {
  if (raw === null)
    return <p>The message is not stored because it exceeds 64 KB with its headers.</p>;
  return (
    <>
      <Tabs name="message" label="Message format" tabs={FORMS} />
      <BytesAs form={tabValue('message', FORMS)} raw={{ raw, raw_encoding }} />
      {Object.keys(headers).length > 0 && (
        <Code isRaw label="Message headers" text={headerLines(headers)} />
      )}
    </>
  );
}

/** More subscriptions without a match are folded. */
const FEW = 3;

/** Also why the event was not routed to other endpoints. */
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
          <a href={projectHref('/subscriptions/new')}>Create a subscription</a>
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
            <a href={projectHref(`/subscriptions/${it.uid}?event=${event.uid}`)}>{it.name}</a>
            {it.mismatch && <span class="muted"> {it.mismatch.sentence}</span>}
            {it.changed_since && <span class="muted"> (changed since the event was accepted)</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}
