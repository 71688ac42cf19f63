import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../support/until.js';
import { makeProject, mistakes, startApi, type Answer, type Api } from '../api.js';
import { httpSource, sign } from './http-source.js';

const ingest = suite('server/ingest/ingest');

let api: Api;
let incoming: Awaited<ReturnType<typeof makeProject>>;
let outgoing: Awaited<ReturnType<typeof makeProject>>;
ingest.before(async () => {
  api = await startApi({
    file: {
      ingest: { max_message_bytes: 2_000 },
      transform: { deadline_ms: 100, pause_overruns: 2 },
    },
  });
  incoming = await makeProject(api, { name: 'in', type: 'incoming' });
  outgoing = await makeProject(api, { name: 'out' });
});
ingest.after(() => api.close());

const event = async (uid: string) =>
  (
    await api.db.rows<Record<string, string | null>>(
      'select event_type, data, headers, source_id, coordinates, idempotency_key, status from events where id = $1',
      [uid],
    )
  )[0]!;
const count = async (table: string) =>
  Number((await api.db.rows<{ n: string }>(`select count(*) as n from ${table}`))[0]!.n);

ingest(
  'an event type that the project rejects quarantines the message, until it is created',
  async () => {
    const strict = await makeProject(api, {
      type: 'incoming',
      config: { unknown_event_types: 'reject' },
    });
    const source = await httpSource(api, strict, { event_type: 'order.paid' });
    const refused = await source.post('{}');
    assert.equal([refused.status, refused.body.data.outcome], [202, 'quarantined']);
    const { content } = (await api.call('GET', `${strict.path}/quarantine`)).body.data;
    assert.is(content[0].code, 'unknown_event_type');
    await api.call('POST', `${strict.path}/event-types`, { name: 'order.paid' });
    await delay(150);
    assert.is((await source.post('{}')).body.data.outcome, 'accepted');
  },
);

ingest(
  'a webhook of GitHub becomes an event with its bytes, type and delivery id, once however often it is sent',
  async () => {
    const source = await httpSource(api, incoming, {
      verifier: { type: 'github', secret: 's3cret' },
    });
    assert.match(source.url, /^\/ingest\/[\w-]{30}$/);
    const body = '{ "action":"opened", "number": 1.50 }';
    const headers = {
      'x-github-event': 'pull_request',
      'x-github-delivery': 'd-1',
      'x-hub-signature-256': `sha256=${sign('s3cret', body)}`,
    };
    const first = await source.post(body, {
      ...headers,
      authorization: 'Bearer of-the-provider',
      cookie: 'a=b',
    });
    assert.equal(
      [first.status, first.body.message, first.body.data.outcome, first.body.data.events],
      [200, 'event created', 'accepted', 1],
    );
    const { coordinates, headers: kept, ...row } = await event(first.body.data.uid);
    assert.equal(row, {
      event_type: 'pull_request',
      data: body,
      source_id: source.uid,
      idempotency_key: `${source.uid}:d-1`,
      status: 'pending',
    });
    assert.match(coordinates!, /^http\//);
    assert.equal(JSON.parse(kept!), {
      'x-github-event': 'pull_request',
      'x-github-delivery': 'd-1',
    });
    const again = await source.post(body, headers);
    assert.equal(
      [again.status, again.body.data],
      [200, { outcome: 'duplicate', uid: first.body.data.uid, events: 0 }],
    );
    const wrong = await source.post(`${body} `, headers);
    assert.equal([wrong.status, wrong.body.code], [401, 'signature_invalid']);
    assert.not.match(wrong.text, /s3cret/);
  },
);

ingest(
  'a source that keeps messages shows what its function got beside what it made, for each event',
  async () => {
    const body_function = `function transform(payload, message) {
    return payload.lines.map((n) => ({ event_type: 'line', data: { n, bytes: message.bytes.length } }));
  }`;
    const fields = {
      body_function,
      forward_headers: ['x-shop'],
      idempotency_keys: ['body.id'],
      keep_messages: true,
    };
    const source = await httpSource(api, incoming, fields);
    assert.is(source.view.keep_messages, true);
    const body = '{ "id": 7, "lines": [1, 2], "card": "4242" }';
    const headers = { 'x-shop': 'a', authorization: 'Bearer of-the-provider' };
    const posted = await source.post(body, headers);
    assert.equal([posted.body.data.outcome, posted.body.data.events], ['accepted', 2]);
    const { content } = (await api.call('GET', `${incoming.path}/events?sourceId=${source.uid}`))
      .body.data;
    assert.is(content.length, 2);
    for (const { uid } of content as { uid: string }[]) {
      const { status, body: shown } = await api.call(
        'GET',
        `${incoming.path}/events/${uid}/message`,
      );
      const { uid: message, ...rest } = shown.data;
      assert.equal(
        [status, rest],
        [
          200,
          { headers: { 'x-shop': 'a' }, raw: body, raw_encoding: 'utf8', raw_bytes: body.length },
        ],
      );
      assert.is(message, posted.body.data.uid);
      const explained = (await api.call('GET', `${incoming.path}/events/${uid}/explain`)).body.data
        .event;
      assert.is(explained.message_bytes, body.length);
    }
    const tested = await api.call('POST', `${incoming.path}/sources/test_function`, {
      event_id: content[0].uid,
    });
    assert.equal(
      tested.body.data.results.map((it: { payload: { data: unknown } }) => it.payload.data),
      [1, 2].map((n) => ({ n, bytes: body.length })),
    );

    const before = await count('event_messages');
    assert.is((await source.post(body, headers)).body.data.outcome, 'duplicate');
    assert.is(
      (await api.call('PUT', source.path, { keep_messages: false })).body.data.keep_messages,
      false,
    );
    await delay(1_100);
    const next = (await source.post('{"id":8,"lines":[1]}')).body.data.uid;
    assert.is(await count('event_messages'), before);
    const { status, body: refused } = await api.call(
      'GET',
      `${incoming.path}/events/${next}/message`,
    );
    assert.equal([status, refused.code], [404, 'not_found']);
    assert.match(refused.fix!, 'keep_messages');
    assert.is(
      (await api.call('POST', `${incoming.path}/sources/test_function`, { event_id: next })).status,
      404,
    );
    const other = `${outgoing.path}/events/${content[0].uid}/message`;
    assert.is((await api.call('GET', other)).status, 404);
  },
);

ingest(
  'of a large message the event tells the size, and a test of a function asks for its bytes',
  async () => {
    const large = await startApi();
    try {
      const project = await makeProject(large, { type: 'incoming' });
      const source = await httpSource(large, project, { keep_messages: true });
      const body = JSON.stringify({ text: 'x'.repeat(70_000) });
      const { uid } = (await source.post(body)).body.data;
      const { raw, raw_bytes } = (await large.call('GET', `${project.path}/events/${uid}/message`))
        .body.data;
      assert.is(raw, null);
      assert.ok(raw_bytes >= body.length);
      const tested = await large.call('POST', `${project.path}/sources/test_function`, {
        event_id: uid,
      });
      assert.match(
        mistakes(tested).join(),
        `event_id names an event whose message of ${raw_bytes} bytes was too large to keep`,
      );
    } finally {
      await large.close();
    }
  },
);

ingest('a quarantined message that was replayed is shown with its event', async () => {
  const source = await httpSource(api, outgoing);
  const { uid } = (await source.post('{"event_type":')).body.data;
  await api.call('PUT', `${outgoing.path}/quarantine/${uid}`, {
    raw: '{"event_type":"mended","data":{}}',
  });
  assert.is((await api.call('PUT', `${outgoing.path}/quarantine/${uid}/replay`)).status, 200);
  const { raw } = (await api.call('GET', `${outgoing.path}/events/${uid}/message`)).body.data;
  assert.is(raw, '{"event_type":"mended","data":{}}');
});

ingest('a webhook of Stripe has its type and id in the body', async () => {
  const source = await httpSource(api, outgoing, {
    verifier: { type: 'stripe', secret: 'whsec_x' },
  });
  const body = '{"id":"evt_1","type":"charge.succeeded","data":{}}';
  const at = Math.floor(Date.now() / 1000);
  const headers = { 'stripe-signature': `t=${at},v1=${sign('whsec_x', `${at}.${body}`)}` };
  const posts = await Promise.all(Array.from({ length: 5 }, () => source.post(body, headers)));
  assert.equal(posts.map(({ body: it }) => it.data.outcome).sort(), [
    'accepted',
    ...Array<string>(4).fill('duplicate'),
  ]);
  const { event_type, data } = await event(posts[0]!.body.data.uid);
  assert.equal([event_type, data], ['charge.succeeded', body]);
});

ingest(
  'without settings a source of an incoming project takes any JSON object, and one of an outgoing project takes ingest messages',
  async () => {
    const any = await httpSource(api, incoming);
    assert.equal([any.view.event_type, any.view.verifier], ['webhook', { type: 'noop' }]);
    const made = await any.post('{"a":1}');
    assert.equal((await event(made.body.data.uid)).event_type, 'webhook');
    const ours = await httpSource(api, outgoing);
    const post = await ours.post(
      '{"event_type":"order.paid","owner_id":"nobody","idempotency_key":"k-9","data":{"n":1}}',
    );
    const { event_type, data, idempotency_key } = await event(post.body.data.uid);
    assert.equal(
      [post.status, event_type, data, idempotency_key],
      [200, 'order.paid', '{"n":1}', 'k-9'],
    );
  },
);

ingest(
  'type and key may come from a header, the body or the query, and what a body claims beside its own members means nothing',
  async () => {
    const source = await httpSource(api, outgoing, {
      event_type: 'other',
      event_type_location: 'request.body.meta.kind',
      idempotency_keys: ['header.X-Id', 'query.n'],
    });
    const one = await source.post('{"meta":{"kind":7},"owner_id":"shop"}', { 'x-id': 'a' }, '?n=1');
    const row = await event(one.body.data.uid);
    assert.equal([row['event_type'], row['idempotency_key']], ['7', `${source.uid}:["a","1"]`]);
    assert.equal(
      await api.db.rows('select owner_id from events where id = $1', [one.body.data.uid]),
      [{ owner_id: null }],
    );
    const other = await event((await source.post('{}', { 'x-id': 'a' }, '?n=2')).body.data.uid);
    assert.equal(
      [other['event_type'], other['idempotency_key']],
      ['other', `${source.uid}:["a","2"]`],
    );
    assert.is(
      (await event((await source.post('{}', { 'x-id': 'a' })).body.data.uid))['idempotency_key'],
      null,
    );
    const broken = await source.post('{"a":1},"owner_id":"shop"', { 'x-id': 'b' });
    assert.equal([broken.status, broken.body.data.outcome], [202, 'quarantined']);
  },
);

ingest(
  'requests whose keys differ in a digit, a type or where one part ends are no duplicates of each other, and each is one of itself',
  async () => {
    const long = 'x'.repeat(500);
    const values = [
      '7',
      '"7"',
      '7.0',
      '"7:1"',
      '[7]',
      '"[7]"',
      '{"7":7}',
      'true',
      '"true"',
      '"null"',
      `"${long}"`,
      `"${long}x"`,
      '"é"',
    ];
    const digits = [
      '1830000000000000001',
      '1830000000000000002',
      '1.830000000000000001e18',
      '0.1',
      '0.10000000000000000001',
    ];
    const hashed = createHash('sha256').update(`["${long}"]`).digest('hex');
    const one = [...values, ...digits, `"${hashed}"`, `"sha256=${hashed}"`].map(
      (id) => `{"id":${id}}`,
    );
    const seats = [
      '"Hall 2","seat":"14"',
      '"Hall","seat":"2 14"',
      '"a\\",\\"b","seat":"c"',
      '"a","seat":"b\\",\\"c"',
      '1,"seat":"2"',
      '"1","seat":2',
    ];
    const body_function =
      'function transform(p) { return [1, 2].map((n) => ({ event_type: "x", data: { n } })); }';
    const rows: [Record<string, unknown>, string[]][] = [
      [{ idempotency_keys: ['body.id'] }, one],
      [{ idempotency_keys: ['body.id'], body_function }, one],
      [{ idempotency_keys: ['body.list.0.id'] }, one.map((it) => `{"list":[${it}]}`)],
      [{ idempotency_keys: ['body.room', 'body.seat'] }, seats.map((it) => `{"room":${it}}`)],
    ];
    for (const [fields, bodies] of rows) {
      const source = await httpSource(api, incoming, fields);
      for (const outcome of ['accepted', 'duplicate'])
        for (const body of bodies)
          assert.is(
            (await source.post(body)).body.data.outcome,
            outcome,
            `${JSON.stringify(fields)} ${body}`,
          );
      const made = bodies.length * ('body_function' in fields ? 2 : 1);
      assert.equal(
        await api.db.rows('select count(*)::int as n from events where source_id = $1', [
          source.uid,
        ]),
        [{ n: made }],
      );
    }
    const spelled = await httpSource(api, incoming, { idempotency_keys: ['body.id'] });
    assert.is((await spelled.post('{"id":"a"}')).body.data.outcome, 'accepted');
    assert.is((await spelled.post('{ "\\u0069d" : "\\u0061" }')).body.data.outcome, 'duplicate');
    for (const empty of ['null', '""', '[]', '{ }'])
      for (let n = 0; n < 2; n++)
        assert.is((await spelled.post(`{"id":${empty}}`)).body.data.outcome, 'accepted', empty);
  },
);

ingest('values of a repeated header or parameter are not those of one with a comma', async () => {
  const source = await httpSource(api, incoming, { idempotency_keys: ['header.X-Id', 'query.n'] });
  const post = async (ids: string[], query: string) => {
    const request = http.request(api.url + source.url + query, {
      method: 'POST',
      headers: { 'X-Id': ids },
    });
    request.end('{}');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return (JSON.parse(await text(response)) as Answer['body']).data.outcome as string;
  };
  for (const outcome of ['accepted', 'duplicate'])
    for (const ids of [['a, b'], ['a', 'b'], ['b', 'a']])
      for (const query of ['?n=1&n=2', '?n=1,2'])
        assert.is(await post(ids, query), outcome, `${ids.join('|')} ${query}`);
});

ingest(
  'a form becomes an event: its payload, or an object of its fields; what is signed is the body as it came',
  async () => {
    const signed = await httpSource(api, incoming, {
      verifier: { type: 'github', secret: 's3cret' },
      idempotency_keys: ['body.id'],
    });
    const form = {
      'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
      'x-github-event': 'push',
    };
    const body = 'payload=%7B%22id%22%3A+1830000000000000001%2C%22t%22%3A%22%C3%A9%22%7D';
    const headers = { ...form, 'x-hub-signature-256': `sha256= ${sign('s3cret', body)}` };
    const { data, event_type } = await event((await signed.post(body, headers)).body.data.uid);
    assert.equal([event_type, data], ['push', '{"id": 1830000000000000001,"t":"é"}']);
    assert.is((await signed.post(body, headers)).body.data.outcome, 'duplicate');
    assert.is((await signed.post(`${body}+`, headers)).status, 401);

    const source = await httpSource(api, incoming);
    const made = async (text: string) =>
      (await event((await source.post(text, form)).body.data.uid))['data'];
    assert.is(
      await made('command=%2Fdeploy&text=a+b&text=c&__proto__=x'),
      '{"command":"/deploy","text":["a b","c"],"__proto__":"x"}',
    );
    assert.is(await made('payload=%7B%7D&other=1'), '{"payload":"{}","other":"1"}');
    assert.is(await made('{"a":1}'), '{"a":1}');
    for (const odd of ['payload=x', 'payload=%5B1%5D', ''])
      assert.is((await source.post(odd, form)).body.data.outcome, 'quarantined', odd);
  },
);

ingest(
  'a form in parts becomes an event of its fields and files; one that cannot be read is quarantined by its content type',
  async () => {
    const source = await httpSource(api, incoming);
    const form = new FormData();
    form.append('from', 'ada@example.com');
    form.append('to', 'a');
    form.append('to', 'é');
    form.append('attachment', new File(['x,y'], 'report.csv', { type: 'text/csv' }));
    const request = new Request('http://localhost', { method: 'POST', body: form });
    const type = request.headers.get('content-type')!;
    const body = new Uint8Array(await request.arrayBuffer());
    const posted = await source.post(body, { 'content-type': type });
    assert.is(posted.body.data.outcome, 'accepted');
    const { data } = await event(posted.body.data.uid);
    assert.equal(JSON.parse(data!), {
      from: 'ada@example.com',
      to: ['a', 'é'],
      attachment: { name: 'report.csv', type: 'text/csv', base64: 'eCx5' },
    });
    const payload = new FormData();
    payload.append('payload', '{"id":7}');
    const one = new Request('http://localhost', { method: 'POST', body: payload });
    const sole = await source.post(new Uint8Array(await one.arrayBuffer()), {
      'content-type': one.headers.get('content-type')!,
    });
    assert.is((await event(sole.body.data.uid))['data'], '{"id":7}');

    for (const [text, contentType, named] of [
      ['--b\r\nnonsense', 'multipart/form-data; boundary=b', 'multipart/form-data'],
      ['--b\r\n', 'multipart/form-data', 'multipart/form-data'],
      ['<a/>', 'text/xml', 'text/xml'],
    ] as const) {
      const { body: refused } = await source.post(text, { 'content-type': contentType });
      assert.is(refused.data.outcome, 'quarantined', contentType);
      const [{ reason = '' } = {}] = await api.db.rows<{ reason: string }>(
        'select reason from quarantined_messages where id = $1',
        [refused.data.uid],
      );
      assert.match(reason, `The message has the content type ${named}.`);
    }
  },
);

ingest('webhooks of Shopify with and without X- in their headers are the same', async () => {
  const source = await httpSource(api, incoming, {
    verifier: { type: 'shopify', secret: 's3cret' },
  });
  const body = '{"id":1}';
  const headers = (prefix: string, id: string) => ({
    [`${prefix}shopify-hmac-sha256`]: sign('s3cret', body, 'base64'),
    [`${prefix}shopify-topic`]: 'orders/create',
    [`${prefix}shopify-webhook-id`]: id,
    [`${prefix}shopify-shop-domain`]: 'shop.example.com',
  });
  for (const prefix of ['', 'x-']) {
    const { uid } = (await source.post(body, headers(prefix, `d-${prefix}`))).body.data;
    const row = await event(uid);
    assert.equal(
      [row['event_type'], row['idempotency_key'], JSON.parse(row['headers']!)],
      [
        'orders/create',
        `${source.uid}:d-${prefix}`,
        {
          'x-shopify-topic': 'orders/create',
          'x-shopify-webhook-id': `d-${prefix}`,
          'x-shopify-shop-domain': 'shop.example.com',
        },
      ],
    );
  }
  assert.is((await source.post(body, headers('', 'd-x-'))).body.data.outcome, 'duplicate');
});

ingest('webhooks of Twilio are verified by the URL that they were sent to', async () => {
  const source = await httpSource(api, incoming, {
    verifier: { type: 'twilio', secret: 's3cret' },
  });
  const url = `${api.url}${source.url}?shop=a%20b`;
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    'x-twilio-signature': sign('s3cret', `${url}BodyHiFrom+1`, 'base64', 'sha1'),
    'i-twilio-idempotency-token': 't-1',
  };
  const posted = await source.post('From=%2B1&Body=Hi', headers, '?shop=a%20b');
  assert.is(posted.body.data?.outcome, 'accepted', posted.text);
  const row = await event(posted.body.data.uid);
  assert.equal(
    [row['event_type'], row['data'], row['idempotency_key']],
    ['webhook', '{"From":"+1","Body":"Hi"}', `${source.uid}:t-1`],
  );
  assert.is((await source.post('From=%2B1&Body=Hi', headers, '?shop=b')).status, 401);
});

ingest(
  'the handshake of a provider is answered as its source says, and makes no event',
  async () => {
    const handshake = { type: 'hub_challenge', token: 't0ken' };
    const source = await httpSource(api, incoming, {
      verifier: {
        type: 'hmac',
        hmac: { header: 'x-s', hash: 'SHA256', encoding: 'hex', secret: 's3cret' },
        handshake,
      },
    });
    assert.equal(source.view.verifier.handshake, { type: 'hub_challenge', token: '********' });
    const get = (query: string, url = source.url) =>
      fetch(
        `${api.url}${url}?hub.mode=subscribe&hub.challenge=%3Cscript%3E&hub.verify_token=${query}`,
      );
    const before = [await count('events'), await count('quarantined_messages')];
    const answer = await get('t0ken');
    assert.equal([answer.status, await answer.text()], [200, '<script>']);
    assert.equal(
      [answer.headers.get('content-type'), answer.headers.get('x-content-type-options')],
      ['text/plain; charset=utf-8', 'nosniff'],
    );
    assert.is((await get('other')).status, 401);
    assert.is((await get('t0ken', `/ingest/${'x'.repeat(30)}`)).status, 404);
    const plain = await httpSource(api, incoming);
    const none = await get('t0ken', plain.url);
    assert.equal([none.status, none.headers.get('allow')], [405, 'POST']);

    const slack = await httpSource(api, incoming, {
      verifier: { type: 'slack', secret: 's3cret', handshake: { type: 'slack' } },
    });
    const asked = '{"type":"url_verification","challenge":"42"}';
    assert.is((await slack.post(asked)).status, 401);
    const at = String(Math.floor(Date.now() / 1000));
    const headers = {
      'x-slack-request-timestamp': at,
      'x-slack-signature': `v0=${sign('s3cret', `v0:${at}:${asked}`)}`,
    };
    assert.equal(
      [
        (await slack.post(asked, headers)).text,
        await count('events'),
        await count('quarantined_messages'),
      ],
      ['42', ...before],
    );
    const okta = await httpSource(api, incoming, {
      verifier: {
        type: 'api_key',
        api_key: { header_name: 'authorization', header_value: 'k-1' },
        handshake: { type: 'okta' },
      },
    });
    const verify = (key: string) =>
      fetch(api.url + okta.url, {
        headers: { authorization: key, 'x-okta-verification-challenge': 'c' },
      });
    assert.equal(
      [(await verify('k-2')).status, await (await verify('k-1')).text()],
      [401, '{"verification":"c"}'],
    );
    const head = await httpSource(api, incoming, {
      verifier: { type: 'noop', handshake: { type: 'reachable' } },
    });
    assert.is((await fetch(api.url + head.url, { method: 'HEAD' })).status, 200);
  },
);

ingest('a webhook of Svix is verified, and made once', async () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const source = await httpSource(api, incoming, {
    verifier: { type: 'standard_webhooks', secret },
  });
  const [body, at] = ['{"type":"user.created","data":{}}', String(Math.floor(Date.now() / 1000))];
  const signature = sign(Buffer.from(secret.slice(6), 'base64'), `msg_1.${at}.${body}`, 'base64');
  const headers = { 'svix-id': 'msg_1', 'svix-timestamp': at, 'svix-signature': `v1,${signature}` };
  const { event_type, idempotency_key } = await event(
    (await source.post(body, headers)).body.data.uid,
  );
  assert.equal([event_type, idempotency_key], ['user.created', `${source.uid}:msg_1`]);
  assert.is((await source.post(body, headers)).body.data.outcome, 'duplicate');
});

ingest(
  'what can never be an event is quarantined with its reason, and the sender need not repeat it',
  async () => {
    const source = await httpSource(api, incoming, { event_type_location: 'header.X-Topic' });
    const codes: Record<string, [string | Uint8Array<ArrayBuffer>, string]> = {
      'no JSON': ['hello', 'not_json'],
      'an array': ['[1]', 'invalid_message'],
      empty: ['', 'empty'],
      'no UTF-8': [new Uint8Array([0xff, 0xfe]), 'not_utf8'],
      'too deep': [`{"a":${'['.repeat(300)}${']'.repeat(300)}}`, 'too_deep'],
    };
    for (const [name, [body, code]] of Object.entries(codes)) {
      const { status, body: answer } = await source.post(body, { 'x-topic': 't' });
      assert.equal([status, answer.data.outcome], [202, 'quarantined'], name);
      const { data } = (await api.call('GET', `${incoming.path}/quarantine/${answer.data.uid}`))
        .body;
      assert.equal([data.code, data.source_id], [code, source.uid], name);
    }
    const untyped = await source.post('{"a":1}');
    assert.is(untyped.status, 202);
    const { data } = (await api.call('GET', `${incoming.path}/quarantine/${untyped.body.data.uid}`))
      .body;
    assert.match(data.reason, 'event_type is missing');
  },
);

ingest(
  'a function makes of a message several events, drops it, or is told what it did wrong',
  async () => {
    const source = await httpSource(api, incoming, {
      idempotency_keys: ['body.id'],
      body_function: `function transform(p) {
      if (p.drop) return null;
      if (p.loop) for (;;);
      return p.items.map((data) => ({ event_type: 'item', data }));
    }`,
    });
    const made = await source.post('{"id":"x","items":[{"n":1},{"n":2}]}');
    assert.equal([made.body.data.outcome, made.body.data.events], ['accepted', 2]);
    assert.equal(
      (await source.post('{"id":"x","items":[{"n":1},{"n":2}]}')).body.data.outcome,
      'duplicate',
    );
    const rows = await api.db.rows(
      'select data, idempotency_key from events where source_id = $1 order by data',
      [source.uid],
    );
    assert.equal(rows, [
      { data: '{"n":1}', idempotency_key: `${source.uid}:x` },
      { data: '{"n":2}', idempotency_key: `${source.uid}:x:1` },
    ]);
    assert.equal((await source.post('{"drop":true}')).body.data, {
      outcome: 'dropped',
      uid: null,
      events: 0,
    });
    assert.is((await source.post('{}')).body.data.outcome, 'quarantined');

    for (let n = 0; n < 2; n++)
      assert.is((await source.post('{"loop":true}')).body.data.outcome, 'quarantined');
    // The answer does not wait for the pause.
    const { pause_reason } = await until(
      'a source whose function overruns to be paused',
      async () => {
        const it = (await api.call('GET', source.path)).body.data;
        return it.paused_at && it;
      },
    );
    assert.match(pause_reason, 'of its transform function overran');
  },
);

ingest(
  'a source that is paused asks to send again later; one that is disabled, deleted or made up is not found',
  async () => {
    const source = await httpSource(api, incoming);
    const soon = () => new Promise((resolve) => setTimeout(resolve, 1_100));
    assert.is((await source.post('{}')).status, 200);
    await api.call('POST', `${source.path}/pause`);
    await soon();
    const paused = await source.post('{}');
    assert.equal(
      [paused.status, paused.body.code, paused.headers.get('retry-after')],
      [503, 'source_paused', '60'],
    );
    await api.call('POST', `${source.path}/resume`);
    await api.call('PUT', source.path, { is_disabled: true });
    await soon();
    assert.is((await source.post('{}')).status, 404);
    const last = source.url.at(-1) === 'A' ? 'B' : 'A';
    for (const url of [`${source.url.slice(0, -1)}${last}`, '/ingest/x', `${source.url}x`])
      assert.is((await fetch(api.url + url, { method: 'POST', body: '{}' })).status, 404, url);
    assert.is((await fetch(api.url + source.url)).status, 404);
  },
);

ingest(
  'a body that is too large is refused before it is stored, and so is one that is compressed',
  async () => {
    const source = await httpSource(api, incoming);
    const before = await count('events');
    const fits = `{"a":"${'x'.repeat(1_992)}"}`;
    assert.is((await source.post(fits)).status, 200);
    const large = await source.post(`${fits} `);
    assert.equal([large.status, large.body.code], [413, 'body_too_large']);
    assert.is((await source.post('{}', { 'content-encoding': 'gzip' })).status, 415);
    assert.is(await count('events'), before + 1);
    const { content } = (await api.call('GET', `${incoming.path}/sources/states`)).body.data;
    const { state, reason } = (content as { uid: string; state: string; reason: string }[]).find(
      ({ uid }) => uid === source.uid,
    )!;
    assert.is(state, 'failing');
    assert.match(reason, /^1 request was refused \(413\) since .*larger than 2000 bytes/);
  },
);

ingest('a source of GitHub takes what GitHub sends, up to 25 MB', async () => {
  const source = await httpSource(api, incoming, {
    verifier: { type: 'github', secret: 's3cret' },
    body_function: 'function transform(payload) { throw new Error("not yet"); }',
  });
  const post = (body: string) =>
    source.post(body, {
      'x-github-event': 'push',
      'x-hub-signature-256': `sha256=${sign('s3cret', body)}`,
    });
  const body = `{"a":"${'x'.repeat(3 * 1024 * 1024)}"}`;
  const { uid } = (await post(body)).body.data;
  await api.call('PUT', source.path, { body_function: null });
  await delay(1_100);
  const replayed = await api.call('PUT', `${incoming.path}/quarantine/${uid}/replay`);
  assert.is(replayed.status, 200, replayed.text.slice(0, 300));
  assert.is((await post(body)).body.data.outcome, 'accepted');
  const large = await post(`{"a":"${'x'.repeat(26 * 1024 * 1024)}"}`);
  assert.equal([large.status, large.body.code], [413, 'body_too_large']);
});

ingest(
  'secrets are sealed at rest, masked in answers, and kept when their mask comes back',
  async () => {
    const hmac = { header: 'X-Sig', hash: 'SHA256', encoding: 'hex', secret: 's3cret' };
    const source = await httpSource(api, incoming, { verifier: { type: 'hmac', hmac } });
    const masked = { ...hmac, secret: '********' };
    assert.equal(source.view.verifier, { type: 'hmac', hmac: masked });
    const [{ http } = { http: '' }] = await api.db.rows<{ http: string }>(
      'select http::text as http from sources where id = $1',
      [source.uid],
    );
    assert.match(http, '"sealed:');
    assert.not.match(http, 's3cret');
    const changed = await api.call('PUT', source.path, {
      verifier: { type: 'hmac', hmac: { ...masked, header: 'X-Other' } },
      name: 'renamed',
    });
    assert.equal(
      [changed.status, changed.body.data.name, changed.body.data.verifier.hmac.header],
      [200, 'renamed', 'X-Other'],
    );
    assert.is((await source.post('{"a":1}', { 'x-other': sign('s3cret', '{"a":1}') })).status, 200);
    const moved = await api.call('PUT', source.path, {
      verifier: { type: 'github', secret: '********' },
    });
    assert.equal(mistakes(moved), [
      'verifier.secret is the mask of a secret, but none is stored; give the secret itself',
    ]);
  },
);

ingest(
  'fields that a type of source does not have, and answers that would be pages of this host, are refused',
  async () => {
    const create = async (fields: object) =>
      mistakes(await api.call('POST', `${incoming.path}/sources`, { name: 'x', ...fields }));
    assert.equal(await create({ type: 'http', pub_sub: { type: 'sqs' } }), [
      'pub_sub does not belong to the type http',
    ]);
    assert.equal(
      await create({ type: 'pub_sub', pub_sub: { type: 'sqs' }, verifier: { type: 'noop' } }),
      ['verifier does not belong to the type pub_sub'],
    );
    const html = await create({
      type: 'http',
      custom_response: { body: '<script>', content_type: 'text/html' },
    });
    assert.match(
      html.join(),
      'custom_response.content_type must be one of application/json, text/plain',
    );
    assert.match(
      (await create({ type: 'http', idempotency_keys: ['id'] })).join(),
      'must be a place in a request',
    );
    const source = await httpSource(api, incoming, {
      custom_response: { body: 'thanks', content_type: 'text/plain' },
    });
    const answer = await source.post('{}');
    assert.equal(
      [answer.status, answer.text, answer.headers.get('content-type')],
      [200, 'thanks', 'text/plain; charset=utf-8'],
    );
    assert.match(
      mistakes(await api.call('PUT', source.path, { type: 'pub_sub' })).join(),
      'cannot be changed from http',
    );
    const lag = await api.call('GET', `${source.path}/lag`);
    assert.match(lag.body.data.reason, 'has no broker');
  },
);

ingest(
  'odd requests are answered with an error of the sender, or quarantined, and never with one of ours',
  async () => {
    const source = await httpSource(api, incoming, {
      event_type_location: 'body.a.b',
      idempotency_keys: ['body.constructor.name', 'query.__proto__'],
    });
    const bodies = [
      'null',
      '""',
      '{"a":null}',
      '{"a":{"b":"\\u0000"}}',
      '{"a":{"b":"x"},"c":"\\ud800"}',
      '{"__proto__":1}',
      '{"a":{"b":[]}}',
      '1e999',
      '\u0000',
    ];
    for (const body of bodies)
      for (const query of ['', '?__proto__=1', '?n=1&n=2', '?%00'])
        assert.ok((await source.post(body, {}, query)).status < 500, `${body} ${query}`);
  },
);

ingest(
  'api_rate_limit: a source takes so many requests a second, and others are not affected',
  async () => {
    const slow = await startApi({ file: { api_rate_limit: 5 } });
    try {
      const project = await makeProject(slow, { type: 'incoming' });
      const [one, two] = [await httpSource(slow, project), await httpSource(slow, project)];
      const posts = await Promise.all(Array.from({ length: 12 }, () => one.post('{}')));
      const refused = posts.filter(({ status }) => status === 429);
      assert.ok(refused.length >= 5, `${refused.length} were refused`);
      assert.is(refused[0]!.headers.get('retry-after'), '1');
      assert.is((await two.post('{}')).status, 200);
    } finally {
      await slow.close();
    }
  },
);

ingest(
  'guesses at a source are counted before they are verified, and concern neither its producer nor other sources',
  async () => {
    const fields = {
      event_type: 'a',
      verifier: { type: 'basic_auth', basic_auth: { username: 'shop', password: 'right' } },
    };
    const basic = (password: string) => ({
      authorization: `Basic ${Buffer.from(`shop:${password}`).toString('base64')}`,
    });
    const [guessed, used, other] = await Promise.all(
      [1, 2, 3].map(() => httpSource(api, incoming, fields)),
    );
    const guess = async ({ post }: NonNullable<typeof guessed>) => {
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, n) => post('{}', basic(`wrong ${n}`))),
      );
      return [401, 429].map((status) => answers.filter((it) => it.status === status).length);
    };
    assert.is((await used!.post('{}', basic('right'))).status, 200);
    assert.equal(await guess(guessed!), [10, 50]);
    assert.equal(await guess(used!), [10, 50]);
    const locked = await guessed!.post('{}', basic('right'));
    assert.equal([locked.status, locked.body.code], [429, 'too_many_logins']);
    assert.is((await used!.post('{}', basic('right'))).status, 200);
    assert.is((await other!.post('{}', basic('right'))).status, 200);
  },
);

ingest('an address that sent wrong signatures is refused before its body is read', async () => {
  const hmac = { header: 'x-s', hash: 'SHA256', encoding: 'hex', secret: 's3cret' };
  const { post } = await httpSource(api, incoming, {
    event_type: 'a',
    verifier: { type: 'hmac', hmac },
  });
  const wrong = await Promise.all(Array.from({ length: 30 }, () => post('{}', { 'x-s': 'ab' })));
  assert.is(wrong.filter(({ status }) => status === 401).length, 10);
  // Reading the body would refuse the encoding.
  const refused = await post('{}', { 'x-s': sign('s3cret', '{}'), 'content-encoding': 'gzip' });
  assert.equal([refused.status, refused.body.code], [429, 'too_many_logins']);
});

ingest.run();
