import type { EventDelivery } from '@gateway/client';
import { useRef } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useList } from '../../api/use-list.js';
import { Log } from '../../components/data/log.js';
import { Empty } from '../../components/feedback/empty.js';
import { Loading } from '../../components/feedback/loading.js';
import { Problem } from '../../components/feedback/problem.js';
import { Button } from '../../components/form/button.js';
import { Page } from '../../components/layout/page.js';
import { query } from '../../router/location.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { columns } from './columns.js';

const LIVE_MS = 2_000;

export default function DeliveryLog() {
  const isAtStart = useRef(true);
  const list = useList<EventDelivery>(
    `${projectId.value} deliveries ${query.value.toString()}`,
    (cursor, signal) =>
      api()
        .eventDeliveries.list({ perPage: 50, ...(cursor ? { next_page_cursor: cursor } : {}) }, { signal })
        .page(),
    { everyMs: LIVE_MS, isHeld: () => !isAtStart.current },
  );
  return (
    <Page title="Deliveries" isFull actions={list.freshCount > 0 && <Button onPress={list.showFresh}>Show {list.freshCount} new</Button>}>
      {list.error && <Problem error={list.error} retry={list.refresh} />}
      {!list.rows && !list.error && <Loading />}
      {list.rows?.length === 0 && <Empty title="No deliveries yet" />}
      {list.rows && list.rows.length > 0 && (
        <Log
          label="Deliveries"
          columns={columns}
          rows={list.rows}
          hasMore={list.hasMore}
          hrefOf={({ uid }) => projectHref(`/deliveries/${uid}`)}
          onEnd={list.loadMore}
          onScroll={(atStart) => {
            isAtStart.current = atStart;
            if (atStart) list.showFresh();
          }}
        />
      )}
    </Page>
  );
}
