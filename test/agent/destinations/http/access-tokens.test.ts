import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpDestination } from '#agent/destinations/http/http-destination';
import type { InFlightDelivery } from '#agent/model/delivery';
import type { NotSent, Attempted } from '#agent/model/destination';
import type { Endpoint } from '#ingest/routing/project';
import { resolveConfig } from '#core/config/config';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import { TokenBuckets } from '#core/process/token-buckets';
import {
  endpoint as receiverOf,
  type Endpoint as Receiver,
  type Script,
} from '../../../support/endpoint.js';
import { within } from '../../../support/until.js';
import { cachedEndpoint, ENCRYPTION_KEY, makeSecret, sealed, secretRecord } from '../../records.js';

const tokens = suite('agent/destinations/http/access-tokens');

/** A result with the fields of both kinds. */
type Result = Omit<Attempted, 'outcome'> &
  Omit<NotSent, 'outcome'> &
  Pick<Attempted | NotSent, 'outcome'>;

interface Scene {
  readonly receiver: Receiver;
  readonly server: Receiver;
  endpoint(oauth2?: object): Endpoint;
  attempt(of: Endpoint, signal?: { readonly aborted: boolean }): Promise<Result>;
}

/** Runs a test with an endpoint that requires a token, and a token server with this script. */
async function withTokens(
  script: Script,
  test: (scene: Scene) => Promise<void>,
  allowedNetworks = ['127.0.0.0/8'],
): Promise<void> {
  const destination = new HttpDestination({
    allowedNetworks,
    maxResponseBytes: 50_000,
    lookupsPerProject: 32,
    open: sealer(ENCRYPTION_KEY).open,
    clock: { now: () => Date.now() },
    texts: resolveConfig({ env: {}, file: {} }).config,
    responsePace: new TokenBuckets(0),
  });
  const [receiver, server] = [await receiverOf(), await receiverOf({ answer: script })];
  try {
    await test({
      receiver,
      server,
      endpoint: (oauth2 = {}) => {
        const client = {
          url: `${server.url}/token`,
          client_id: 'shop & co',
          client_secret: sealed('s3:cret'),
          ...oauth2,
        };
        return cachedEndpoint({
          url: receiver.url,
          secrets: [secretRecord(makeSecret())],
          authentication: { type: 'oauth2', oauth2: client },
        });
      },
      attempt: async (endpoint, signal = { aborted: false }) => {
        const item = { endpoint, delivery: delivery(), trace: undefined };
        const sent = destination.send(item, signal);
        return (await within(sent, 20_000, 'the attempt to end')) as Result;
      },
    });
  } finally {
    await Promise.all([destination.close(), receiver.close(), server.close()]);
  }
}

function delivery(): InFlightDelivery {
  return {
    projectId: newId(),
    id: newId(),
    occurredAtMs: 0,
    eventId: newId(),
    endpointId: newId(),
    subscriptionId: null,
    isTransformed: false,
    attempts: 0,
    eventType: 'order.paid',
    sourceId: null,
    traceparent: null,
    orderKey: null,
    headers: { authorization: 'of the event' },
    body: Buffer.from('{}'),
    agentId: 1,
  };
}

const token = (text: unknown, rest: object = {}) => ({
  body: JSON.stringify({ access_token: text, token_type: 'Bearer', ...rest }),
});

tokens(
  'a token is requested by client credentials, sent in place of what the event says, and kept',
  () =>
    withTokens(
      token('abc', { expires_in: 3600 }),
      async ({ receiver, server, endpoint, attempt }) => {
        const one = endpoint({ scope: 'hooks.write', audience: 'https://shop' });
        assert.is((await attempt(one)).outcome, 'delivered');
        await Promise.all([attempt(one), attempt(one)]);
        assert.is(server.requests.length, 1);
        const { method, url, headers, body } = server.requests[0]!;
        assert.equal(
          [method, url, headers['content-type']],
          ['POST', '/token', 'application/x-www-form-urlencoded'],
        );
        assert.is(
          body.toString(),
          'grant_type=client_credentials&scope=hooks.write&audience=https%3A%2F%2Fshop',
        );
        assert.is(
          Buffer.from(headers['authorization']!.slice(6), 'base64').toString(),
          'shop+%26+co:s3%3Acret',
        );
        assert.equal(
          receiver.requests.map((it) => it.headers['authorization']),
          ['Bearer abc', 'Bearer abc', 'Bearer abc'],
        );
      },
    ),
);

tokens('a token server that reads the form alone gets the client id and secret there', () =>
  withTokens(
    ({ body, headers }) =>
      body.toString().includes('client_secret=') && !headers['authorization']
        ? token('abc')
        : { status: 401, body: '{"error":"invalid_client"}' },
    async ({ server, endpoint, attempt }) => {
      assert.match((await attempt(endpoint())).detail, /401 invalid_client\. .*client_auth/);
      assert.is((await attempt(endpoint({ client_auth: 'post' }))).outcome, 'delivered');
      assert.is(
        server.requests[1]!.body.toString(),
        'grant_type=client_credentials&client_id=shop+%26+co&client_secret=s3%3Acret',
      );
    },
  ),
);

tokens('attempts that begin together share one request', () =>
  withTokens({ delayMs: 100, ...token('abc') }, async ({ server, endpoint, attempt }) => {
    const one = endpoint();
    const records = await Promise.all([attempt(one), attempt(one), attempt(one)]);
    assert.ok(records.every(({ outcome }) => outcome === 'delivered'));
    assert.is(server.requests.length, 1);
  }),
);

tokens('a token that expires, or that the endpoint rejects, is replaced', () =>
  withTokens(
    [token('first', { expires_in: '0.2' }), token('second'), token('third')],
    async ({ receiver, endpoint, attempt }) => {
      const one = endpoint();
      await attempt(one);
      await new Promise((resolve) => setTimeout(resolve, 250));
      await attempt(one);
      receiver.answer([{ status: 401 }, {}]);
      assert.is((await attempt(one)).code, 401);
      await attempt(one);
      assert.equal(
        receiver.requests.map((it) => it.headers['authorization']),
        ['Bearer first', 'Bearer second', 'Bearer second', 'Bearer third'],
      );
    },
  ),
);

tokens(
  'without a token nothing is sent, and the attempt says why in words of our own',
  async () => {
    const cases: readonly [Script, string, RegExp][] = [
      [
        { status: 401, body: '{"error":"invalid_client","error_description":"<b>"}' },
        'unsendable',
        /answered 401 invalid_client\. Check url, client_id/,
      ],
      [
        { status: 400, body: `{"error":"${'x'.repeat(100)} secret"}` },
        'unsendable',
        /answered 400\. Check/,
      ],
      [token(7), 'unsendable', /no access_token that fits into a header/],
      [token('a\r\nb'), 'unsendable', /no access_token that fits into a header/],
      [token('x'.repeat(20_000)), 'unsendable', /no access_token that fits into a header/],
      [{ body: 'null' }, 'unsendable', /no access_token/],
      [{ body: '<html>' }, 'unsendable', /no access_token/],
      [
        { status: 302, headers: { location: 'http://169.254.169.254/' } },
        'status',
        /a redirect to .* are not followed/,
      ],
      [{ close: true }, 'reset', /closed the connection/],
    ];
    for (const [script, errorClass, sentence] of cases)
      await withTokens(script, async ({ receiver, server, endpoint, attempt }) => {
        const record = await attempt(endpoint());
        assert.equal(
          [record.outcome, record.failure, record.code, record.body],
          ['retry', errorClass, null, ''],
        );
        assert.match(record.detail, sentence);
        assert.match(record.detail, `No access token from 127.0.0.1:${server.port}: `);
        assert.is(receiver.requests.length, 0);
      });
  },
);

tokens(
  'the token server is held to the addresses of endpoints, and a secret of another endpoint is not sent',
  async () => {
    await withTokens(
      token('abc'),
      async ({ server, endpoint, attempt }) => {
        assert.is((await attempt(endpoint())).failure, 'refused_address');
        assert.is(server.requests.length, 0);
      },
      [],
    );
    await withTokens(token('abc'), async ({ server, endpoint, attempt }) => {
      const foreign = endpoint({
        client_secret: sealed('s', ['endpoints', newId(), 'authentication']),
      });
      const { reason, detail } = await attempt(foreign);
      assert.is(reason, 'unreadable');
      assert.match(detail, /cannot be decrypted/);
      assert.is(server.requests.length, 0);
    });
  },
);

tokens('nothing is sent if this agent may not send any more when it has the token', () =>
  withTokens({ delayMs: 100, ...token('abc') }, async ({ receiver, endpoint, attempt }) => {
    const signal = { aborted: false };
    const sending = attempt(endpoint(), signal);
    signal.aborted = true;
    assert.equal(await sending, { outcome: 'unsent', reason: 'aborted', detail: '' });
    assert.is(receiver.requests.length, 0);
  }),
);

tokens.run();
