import type { WholeQuarantinedMessage } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Badge } from '../../components/data/badge.js';
import { Copyable } from '../../components/data/copy.js';
import { Facts } from '../../components/data/facts.js';
import { FullTime } from '../../components/data/time.js';
import { Loaded } from '../../components/feedback/loading.js';
import { ButtonLink } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { Panel } from '../../components/layout/panel.js';
import { bytes } from '../../format/number.js';
import type { PageProps } from '../../router/match.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { MessageBytes } from './message-bytes.js';
import { isOfFunction, reasonOf } from './reasons.js';
import { MessageActions } from './replay.js';

export default function MessagePage({ params: { id = '' } }: PageProps) {
  const resource = useResource(`${projectId.value} quarantined ${id}`, (signal) =>
    api().quarantine.get(id, { signal }),
  );
  const source = useResource(
    resource.data && `${projectId.value} source ${resource.data.source_id}`,
    (signal) => api().sources.get(resource.data?.source_id ?? '', { signal }),
  );
  const { data: message } = resource;
  return (
    <Page
      title={message ? reasonOf(message.code).label : 'Quarantined message'}
      above={<a href={projectHref('/quarantine')}>Quarantine</a>}
      actions={
        message?.status === 'quarantined' && <MessageActions id={id} onDone={resource.refresh} />
      }
    >
      <Loaded resource={resource} lines={12}>
        {(data) => (
          <>
            <Panel title="Why it was not accepted" actions={<Badge status={data.status} />}>
              <Why message={data} />
            </Panel>
            <MessageBytes key={data.updated_at} message={data} onChange={resource.refresh} />
            <Panel title="Where it comes from">
              <MessageFacts message={data} sourceName={source.data?.name} />
            </Panel>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Why({
  message: { uid, status, code, reason, source_id: source },
}: {
  readonly message: WholeQuarantinedMessage;
}) {
  return (
    <div class="quarantine-why">
      <p>
        <strong>{reason}</strong>
      </p>
      {status === 'quarantined' && <p>{reasonOf(code).fix}</p>}
      {status === 'quarantined' && isOfFunction(code) && (
        <ButtonLink href={projectHref(`/sources/${source}/function?message=${uid}`)}>
          Open the function on this message
        </ButtonLink>
      )}
      {status === 'replayed' && (
        <p>
          It was replayed: <a href={projectHref(`/events/${uid}`)}>its event</a>.
        </p>
      )}
      {status === 'discarded' && (
        <p>It was discarded, and is deleted when its time of keeping is over.</p>
      )}
    </div>
  );
}

function MessageFacts({
  message,
  sourceName,
}: {
  readonly message: WholeQuarantinedMessage;
  readonly sourceName: string | undefined;
}) {
  const {
    uid,
    source_id: source,
    coordinates,
    occurred_at: at,
    created_at: quarantinedAt,
    edited_at: editedAt,
    headers,
    code,
  } = message;
  return (
    <Facts
      rows={[
        ['Source', <a href={projectHref(`/sources/${source}`)}>{sourceName ?? source}</a>],
        ['Coordinates', <Copyable text={coordinates} what="coordinates" />],
        ['Message time', <FullTime at={at} />],
        ['Quarantined', <FullTime at={quarantinedAt} />],
        ['Edited', editedAt && <FullTime at={editedAt} />],
        ['Size', bytes(message.raw_bytes)],
        ['Code', <code>{code}</code>],
        ['Id', <Copyable text={uid} what="id" />],
        ...Object.entries(headers).map(
          ([name, value]) => [`Header ${name}`, <span class="mono">{value}</span>] as const,
        ),
      ]}
    />
  );
}
