import type { Issue } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useAction } from '../../api/change.js';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Facts, FullTime } from '../../components/data.js';
import { Loaded, Problem } from '../../components/feedback.js';
import { Button, Page, Panel } from '../../components/layout.js';
import { BatchButton } from '../../components/log/batch-dialog.js';
import { count } from '../../format/number.js';
import { rowTime } from '../../format/time.js';
import { projectHref } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { maySend } from '../../session/session.js';
import { Attempt } from '../deliveries/attempt.js';
import { kindWords, StateBadge } from './kind.js';

const LIVE_MS = 2_000;

export default function IssuePage({ params: { id = '' } }: PageProps) {
  const resource = useResource(`issue ${id}`, (signal) => api().issues.get(id, { signal }), {
    everyMs: LIVE_MS,
  });
  const issue = resource.data;
  return (
    <Page
      title={issue ? `${kindWords(issue.kind)} at ${issue.endpoint_name}` : 'Issue'}
      above={<a href={projectHref('/issues')}>Issues</a>}
      actions={issue && maySend() && <Actions issue={issue} onChange={resource.refresh} />}
    >
      <Loaded resource={resource} lines={8}>
        {(it) => (
          <>
            <Panel title="Issue" actions={<StateBadge state={it.state} />}>
              <Facts rows={factsOf(it)} />
            </Panel>
            <Sample issue={it} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ issue, onChange }: { issue: Issue; onChange: () => void }) {
  const { uid, state, first_seen_at: since, endpoint_name: name } = issue;
  const muting = useAction(async () => {
    await (state === 'muted' ? api().issues.unmute(uid) : api().issues.mute(uid));
    onChange();
  });
  return (
    <>
      {muting.error && <Problem error={muting.error} />}
      <Button isRunning={muting.isRunning} onPress={muting.run}>
        {state === 'muted' ? 'Unmute' : 'Mute'}
      </Button>
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
        begin={() => async (options, signal) => {
          const { due, held, left, next } = await api().issues.retry(uid, options, { signal });
          return { count: due + held, held, left, next };
        }}
        onDone={onChange}
      />
    </>
  );
}

function factsOf(it: Issue): (readonly [string, ComponentChildren])[] {
  return [
    ['Reason', it.error],
    ['Endpoint', <a href={projectHref(`/endpoints/${it.endpoint_id}`)}>{it.endpoint_name}</a>],
    ['Failed requests', count(it.failures)],
    ['First seen', <FullTime at={it.first_seen_at} />],
    ['Last seen', <FullTime at={it.last_seen_at} />],
    ['Resolved', it.resolved_at && <FullTime at={it.resolved_at} />],
    ['Muted', it.muted_at && <FullTime at={it.muted_at} />],
    [
      'Delivery',
      <a href={projectHref(`/deliveries/${it.event_delivery_id}`)}>Latest failed delivery</a>,
    ],
  ];
}

/** The newest failed attempt, unless retention has deleted its delivery. */
function Sample({ issue: { event_delivery_id: id, last_seen_at } }: { issue: Issue }) {
  const { data } = useResource(`issue sample ${id} ${last_seen_at}`, async (signal) => {
    const { content } = await api().eventDeliveries.listDeliveryAttempts(id, { signal });
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
