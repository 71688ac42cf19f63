// deadline: 600 s
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openObjectStore } from '#archive/open-store';
import { freePort } from '../support/ports.js';
import { python } from '../support/start/python.js';
import { until } from '../support/until.js';

const lock = suite('archive/object-lock');

lock('a bucket with Object Lock takes objects with encryption', async () => {
  const port = await freePort();
  const server = spawn(
    python(['moto[s3,server]==5.2.5']),
    ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)],
    { stdio: 'ignore' },
  );
  const endpoint = `http://127.0.0.1:${port}`;
  try {
    await until('the server to answer', () =>
      fetch(endpoint).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    const bucket = `${endpoint}/locked`;
    const headers = { 'x-amz-bucket-object-lock-enabled': 'true' };
    assert.is((await fetch(bucket, { method: 'PUT', headers })).status, 200);
    const body =
      '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>';
    assert.is((await fetch(`${bucket}?object-lock`, { method: 'PUT', body })).status, 200);
    assert.not((await fetch(`${bucket}/x`, { method: 'PUT', body: 'without a checksum' })).ok);
    const store = await openObjectStore({
      url: 's3://locked',
      endpoint,
      path_style: true,
      access_key_id: 'key',
      secret_access_key: 'secret',
      sse: 'aws:kms',
      sse_kms_key_id: 'key-1',
    });
    await store.put('a/b', Buffer.from('c'));
    assert.is(Buffer.from((await store.get('a/b'))!).toString(), 'c');
    store.close();
  } finally {
    server.kill();
    await once(server, 'exit');
  }
});

lock.run();
