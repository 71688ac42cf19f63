import { setImmediate } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  CertifiedPools,
  type IdentifiedCertificate,
} from '#agent/destinations/http/certified-pools';
import {
  RequestSender,
  type RequestResult,
  type RequestSenderOptions,
} from '#agent/destinations/http/sender';
import { authority, type Authority } from '../../../support/authority.js';
import {
  issued,
  mutualEndpoint,
  type MutualEndpoint,
} from '../../../support/client-certificates.js';
import { httpProxy } from '../../../support/http-proxy.js';
import { within } from '../../../support/until.js';

const pools = suite('agent/destinations/http/certified-pools');

let trusted: Authority;
let at: MutualEndpoint;
const certificates: Record<string, IdentifiedCertificate> = {};
pools.before(async () => {
  trusted = authority();
  at = await mutualEndpoint(trusted);
  for (const id of ['acme', 'globex']) certificates[id] = { id, ...issued(trusted, id) };
});
pools.after(async () => {
  await at.close();
  trusted.close();
});

/** Sends sequential requests with one sender, each with the certificate of this name. */
async function post(
  names: readonly (string | undefined)[],
  options: Partial<RequestSenderOptions> = {},
): Promise<RequestResult[]> {
  const sender = new RequestSender({
    allowedNetworks: ['127.0.0.0/8'],
    maxResponseBytes: 100,
    lookupsPerProject: 32,
    caFile: trusted.file,
    ...options,
  });
  const request = {
    projectId: 'p',
    url: at.url,
    headers: ['content-type', 'application/json'],
    body: Buffer.from('{}'),
    timeoutMs: 10_000,
  };
  const answers: RequestResult[] = [];
  try {
    for (const name of names) {
      const certificate = name === undefined ? undefined : certificates[name];
      answers.push(
        await within(
          new Promise<RequestResult>((done) => sender.send({ ...request, certificate }, done)),
          15_000,
          'an answer',
        ),
      );
      await setImmediate();
    }
    return answers;
  } finally {
    await sender.close();
  }
}

const seen = async (work: () => Promise<unknown>) => {
  const before = at.requests.length;
  await work();
  return at.requests.slice(before);
};

pools(
  'an endpoint that requires a certificate gets that of the request, and one without is refused',
  async () => {
    const [without, ...others] = await post([undefined, 'acme', 'globex', 'acme']);
    assert.is(without?.status, null);
    assert.match(
      without?.failure?.message ?? '',
      /it (requires|may require) a client certificate\.$/,
    );
    assert.equal(
      others.map(({ status }) => status),
      [200, 200, 200],
    );
  },
);

pools(
  'connections are kept for the next request with the same certificate, and for no other',
  async () => {
    const requests = await seen(() => post(['acme', 'acme', 'globex', 'acme', 'globex']));
    assert.equal(
      requests.map(({ client }) => client),
      ['acme', 'acme', 'globex', 'acme', 'globex'],
    );
    const [a, , b] = requests.map(({ connection }) => connection);
    assert.equal(
      requests.map(({ connection }) => connection),
      [a, a, b, a, b],
    );
    assert.is.not(a, b);
  },
);

pools('behind a proxy the endpoint sees the certificate too', async () => {
  const proxy = await httpProxy({});
  try {
    const requests = await seen(() => post(['acme', 'globex'], { proxy: proxy.url }));
    assert.equal(
      requests.map(({ client }) => client),
      ['acme', 'globex'],
    );
  } finally {
    await proxy.close();
  }
});

pools(
  'beyond the limit the pool that was used longest ago is closed, and opened again when it is needed',
  async () => {
    const opened: string[] = [];
    const closed: string[] = [];
    let name = '';
    const bounded = new CertifiedPools({
      max: 2,
      authorities: undefined,
      open: () => {
        const own = name;
        opened.push(own);
        return {
          dispatch: () => true,
          close: async () => void closed.push(own),
          destroy: async () => void closed.push(own),
        };
      },
    });
    const use = (id: string) => bounded.of({ ...certificates['acme']!, id: (name = id) });
    const first = use('a');
    use('b');
    assert.is(use('a'), first);
    use('c');
    assert.equal([opened, closed], [['a', 'b', 'c'], ['b']]);
    use('b');
    assert.equal(
      [opened, closed],
      [
        ['a', 'b', 'c', 'b'],
        ['b', 'a'],
      ],
    );
    await bounded.destroy();
    assert.equal(closed.slice(2).sort(), ['b', 'c']);
  },
);

pools.run();
