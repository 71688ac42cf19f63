import type { Event } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Badge } from '../../components/data/badge.js';
import { Code } from '../../components/data/code.js';
import { Copyable } from '../../components/data/copy.js';
import { Facts } from '../../components/data/facts.js';
import { FullTime } from '../../components/data/time.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Page } from '../../components/layout/page.js';
import { Panel } from '../../components/layout/panel.js';
import { headerLines } from '../../format/json.js';
import { bytes } from '../../format/number.js';
import type { PageProps } from '../../router/match.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { Message } from './message.js';
import { ReplayButton } from './replay.js';
import { Routing } from './routing.js';
import { Timeline } from './timeline.js';

const LIVE_MS = 2_000;

export default function EventPage({ params: { id = '' } }: PageProps) {
  const event = useResource(`${projectId.value} event ${id}`, (signal) =>
    api().events.get(id, { signal }),
  );
  const explained = useResource(
    event.data && `${projectId.value} event ${id} explained`,
    (signal) => api().events.explain(id, {}, { signal }),
    { everyMs: LIVE_MS },
  );
  const messageBytes = explained.data?.event.message_bytes ?? null;
  const status = explained.data?.event.status ?? event.data?.status;
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
          <>
            <Panel title="What happened" actions={status && <Badge status={status} />}>
              <Loaded resource={explained} lines={5}>
                {(explanation) => <Timeline explanation={explanation} />}
              </Loaded>
            </Panel>
            <Panel title="Why it went there">
              <Loaded resource={explained}>
                {(explanation) => <Routing explanation={explanation} />}
              </Loaded>
            </Panel>
            <div class="event-parts">
              {messageBytes !== null && <Message eventId={id} size={messageBytes} />}
              <Panel title={`Event, ${bytes(data.data_bytes)}`}>
                <EventFacts event={data} sourceName={explained.data?.event.source_name ?? null} />
                <Code label="Data, as it is sent" text={JSON.stringify(data.data)} />
                {Object.keys(data.headers).length > 0 && (
                  <Code isRaw label="Custom headers" text={headerLines(data.headers)} />
                )}
              </Panel>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function EventFacts({
  event,
  sourceName,
}: {
  readonly event: Event;
  readonly sourceName: string | null;
}) {
  const { source_id: source, message_type: kind } = event;
  return (
    <Facts
      rows={[
        ['Event id', <Copyable text={event.uid} what="event id" />],
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
          'For endpoint',
          event.endpoint_id && (
            <a href={projectHref(`/endpoints/${event.endpoint_id}`)}>{event.endpoint_id}</a>
          ),
        ],
        ['For owner', event.owner_id],
        [
          'Idempotency key',
          event.idempotency_key && <Copyable text={event.idempotency_key} what="idempotency key" />,
        ],
        ['Left out', event.notes.length === 0 ? null : event.notes.join('; ')],
      ]}
    />
  );
}
