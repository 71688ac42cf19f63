// deadline: 600 s
import { execFileSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { openObjectStore } from '#archive/open-store';
import { writeDay } from '#archive/write-day';
import { blocksOf } from '../docs/page.js';
import { tempFolder } from '../support/start/keep.js';
import { python } from '../support/start/python.js';

const readers = suite('archive/readers');

const DAY = '2026-01-31';
const place = tempFolder('readers');
const projectId = newId();
const ids = [newId(Date.parse(DAY)), newId(Date.parse(DAY) + 1)];
const sourceId = newId();
const store = await openObjectStore({ url: place, path_style: false });
for (const [n, shard] of [undefined, 'eu'].entries())
  for (const day of [DAY, '2026-02-01'])
    await writeDay(store, {
      shard,
      projectId,
      day,
      writtenBefore: new Date(),
      async *pages() {
        yield await Promise.resolve([
          {
            id: ids[n]!,
            occurred_at: new Date(DAY),
            accepted_at: new Date(DAY),
            source_id: n === 0 ? null : sourceId,
            coordinates: 'api',
            event_type: 'order.paid',
            message_type: 'single',
            endpoint_id: null,
            owner_id: null,
            idempotency_key: null,
            status: 'processed',
            outcome: 'routed',
            headers: '{}',
            message: null,
            notes: null,
            data: `{"order": "o-1042", "n": ${n}}`,
            deliveries: '[]',
          },
        ]);
      },
    });

const READERS = ['pyarrow==26.0.1', 'duckdb==2.0.1', 'polars==2.1.0', 'fastparquet==2026.9.0'];
const path = python(READERS);
const run = (script: string) =>
  JSON.parse(execFileSync(path, ['-c', `import json\n${script}`], { encoding: 'utf8' })) as unknown;
const file = `${place}/shard=eu/project=${projectId}/day=${DAY}/events-0001.parquet`;
const EXPECTED = [[ids[1], sourceId, '{"order": "o-1042", "n": 1}']];

const SCRIPTS = {
  pyarrow: `import pyarrow.parquet as pq
rows = pq.ParquetFile('${file}').read(['id', 'source_id', 'data']).to_pylist()
print(json.dumps([list(row.values()) for row in rows]))`,
  polars: `import polars
print(json.dumps(polars.read_parquet('${file}', hive_partitioning=False).select('id', 'source_id', 'data').rows()))`,
  fastparquet: `import fastparquet
print(json.dumps(fastparquet.ParquetFile('${file}').to_pandas(['id', 'source_id', 'data']).values.tolist()))`,
  DuckDB: `import duckdb
print(json.dumps(duckdb.sql("select id, source_id, data from '${file}'").fetchall()))`,
};
for (const [name, script] of Object.entries(SCRIPTS))
  readers(`${name} reads ids as strings`, () => assert.equal(run(script), EXPECTED));

readers('a reader that takes a folder as a table leaves the manifest out, as Spark does', () => {
  const rows = run(`import pyarrow.dataset as ds
table = ds.dataset('${place}/shard=eu/project=${projectId}', format='parquet')
print(json.dumps(table.to_table(columns=['id', 'source_id', 'data']).to_pylist()))`) as object[];
  assert.is(rows.length, 2);
});

readers('the line of the guide for DuckDB finds events of all shards', () => {
  const { text } = blocksOf('docs/guides/archive.md').find((it) =>
    it.text.includes('read_parquet'),
  )!;
  const line = text.replaceAll('s3://acme-webhooks/events', place);
  const rows = run(`import duckdb
print(json.dumps(duckdb.sql("""${line}""").fetchall()))`) as string[][];
  assert.equal(rows.map(([id]) => id).sort(), ids);
});

readers.run();
