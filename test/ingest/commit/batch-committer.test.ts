import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { BatchCommitter, type BatchCommitterOptions } from '#ingest/commit/batch-committer';
import { Messages } from '../../agent/ready.js';

const commit = suite('ingest/commit/batch-committer');

commit('a commit reserves its capacity before the next one looks at it', async () => {
  const projectId = newId();
  let routed = 0;
  const pool = { query: () => Promise.reject(new Error('away')) };
  const plan: ReturnType<BatchCommitterOptions['router']['plan']> = {
    agentId: 1,
    deliveries: [],
    routes: true,
    route: () => {
      routed++;
      return null;
    },
    handOver: () => undefined,
    turned: () => undefined,
    drop: () => undefined,
  };
  const committer = new BatchCommitter({
    config: { ingest: {} },
    shard: 'default',
    database: { pool },
    log: silentLog,
    router: { plan: () => plan },
  } as unknown as BatchCommitterOptions);
  const committing = committer.commit([new Messages(projectId).ready({})]);
  assert.is(routed, 1);
  await committing.then(
    () => assert.unreachable('the commit fails'),
    ({ message }: Error) => assert.is(message, 'away'),
  );
});

commit.run();
