import type { Issue } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { api, useResource } from '../../api/index.js';
import {
  ActionButton,
  BatchButton,
  Facts,
  FullTime,
  Link,
  Panel,
  ResourcePage,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { rowTime } from '../../format/time.js';
import type { PageProps } from '../../router/route.js';
import { maySend } from '../../session/session.js';
import { Attempt } from '../deliveries/attempt.js';
import { kindWords, StateBadge } from './kind.js';

const LIVE_MS = 2_000;

export default function IssuePage({ id }: PageProps) {
  const resource = useResource(`issue ${id}`, (options) => api().issues.get(id, options), LIVE_MS);
  return (
    <ResourcePage
      resource={resource}
      title={({ kind, endpoint_name: name }) => `${kindWords(kind)} at ${name}`}
      name="Issue"
      list="Issues"
      actions={(it) => maySend() && <Actions issue={it} />}
    >
      {(it) => (
        <>
          <Panel title="Issue" actions={<StateBadge state={it.state} />}>
            <Facts rows={factsOf(it)} />
          </Panel>
          <Sample issue={it} />
        </>
      )}
    </ResourcePage>
  );
}

function Actions({ issue }: { issue: Issue }) {
  const { uid, state, first_seen_at: since, endpoint_name: name } = issue;
  const isMuted = state === 'muted';
  return (
    <>
      <ActionButton work={() => (isMuted ? api().issues.unmute(uid) : api().issues.mute(uid))}>
        {isMuted ? 'Unmute' : 'Mute'}
      </ActionButton>
      <BatchButton
        label={`Retry all since ${rowTime(since)}…`}
        title="Retry failed deliveries"
        words={{
          what: `failed and waiting deliveries to ${name} since ${rowTime(since)}`,
          action: (n) => `Retry ${n} now`,
          done: (n) => `${n} queued`,
          held: 'of them wait until the paused endpoint is activated.',
          left: 'more are skipped: they are already due, or the endpoint is not active.',
        }}
        begin={() => async (step, options) => {
          const { due, held, left, next } = await api().issues.retry(uid, step, options);
          return { count: due + held, held, left, next };
        }}
      />
    </>
  );
}

function factsOf(it: Issue): Readonly<Record<string, ComponentChildren>> {
  return {
    Reason: it.error,
    Endpoint: <Link to={`/endpoints/${it.endpoint_id}`}>{it.endpoint_name}</Link>,
    'Failed requests': count(it.failures),
    'First seen': <FullTime at={it.first_seen_at} />,
    'Last seen': <FullTime at={it.last_seen_at} />,
    Resolved: it.resolved_at && <FullTime at={it.resolved_at} />,
    Muted: it.muted_at && <FullTime at={it.muted_at} />,
    Delivery: <Link to={`/deliveries/${it.event_delivery_id}`}>Latest failed delivery</Link>,
  };
}

/** The newest failed attempt, unless retention has deleted its delivery. */
function Sample({ issue: { event_delivery_id: id, last_seen_at } }: { issue: Issue }) {
  const { data } = useResource(`issue sample ${id} ${last_seen_at}`, async (options) => {
    const { content } = await api().eventDeliveries.listDeliveryAttempts(id, options);
    return content.find(({ status }) => !status);
  });
  if (!data) return null;
  return (
    <Panel title="Latest failed request">
      <div class="attempts">
        <Attempt attempt={data} isOpen />
      </div>
    </Panel>
  );
}
