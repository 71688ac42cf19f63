import { createHmac } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { GatewayApiError } from '@gateway/client';
import { failureOf, redirectFailure, timeoutFailure } from '#agent/request/failure';
import { GatewayError } from '#core/errors/errors';
import { LookupError } from '#core/http/names';
import { ProxyError } from '#core/http/proxy';
import { RefusedAddressError } from '#core/http/ssrf-guard';
import { VERIFY } from '#dashboard/pages/endpoints/verify';
import { failureLabel, failureWords, type FailedAttempt } from '#dashboard/portal/attempts';
import { errorSentence } from '#dashboard/portal/errors';
import { deliveryWords, inactiveSentence } from '#dashboard/portal/states';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';

const words = suite('dashboard/portal-words');

/** Words of operators, which the owner of an endpoint does not read. */
const INTERNAL =
  /operator|agent|project|breaker|gateway|postgres|\bkv\b|function|subscription of|setting\b|allowed_networks|resolv\.conf|proxy 10|[a-z]+_[a-z]+/i;

const coded = (code: string, message = code) => Object.assign(new Error(message), { code });
const place = 'shop.example.com:8443';
const attempt = (fields: Partial<FailedAttempt>): FailedAttempt => ({
  error_class: 'status',
  http_status: null,
  error: null,
  duration_ms: 10_000,
  url: 'https://shop.example.com:8443/hooks',
  ...fields,
});

/** Returns the words for an error as an agent records it. */
function wordsOf(error: Error) {
  const { class: kind, message } = failureOf(error, { place, status: null });
  return failureWords(attempt({ error_class: kind, error: message }));
}

words('each error of a request has a sentence for the owner of the endpoint, and a remedy', () => {
  const cases: [failed: Error, sentence: RegExp, remedy: RegExp][] = [
    [new LookupError('shop.example.com', 'ENOTFOUND'), /host name shop\.example\.com/, /DNS/],
    [new LookupError('shop.example.com', 'ECONNREFUSED'), /look up the host name/, /DNS/],
    [coded('ECONNREFUSED'), /No server accepts connections at shop\.example\.com:8443\./, /runs/],
    [coded('UND_ERR_CONNECT_TIMEOUT'), /could not connect to your server/, /firewall/],
    [
      new RefusedAddressError('shop.example.com', ['10.0.0.7']),
      /private or reserved network/,
      /internet/,
    ],
    [new ProxyError('The proxy 10.0.0.9:3128 answered 407.'), /could not reach/, /contact us/],
    [coded('CERT_HAS_EXPIRED'), /: its certificate has expired\.$/, /valid certificate/],
    [coded('DEPTH_ZERO_SELF_SIGNED_CERT'), /self-signed/, /public authority/],
    [
      coded('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
      /requires a client certificate/,
      /a client certificate that your server accepts/,
    ],
    [coded('EPROTO', 'write EPROTO 40D7:error:0A'), /secure connection to your server/, /valid/],
    [coded('ECONNRESET'), /closed the connection without an answer/, /client certificate/],
    [coded('HPE_INVALID_CONSTANT'), /not valid HTTP/, /web server/],
    [new TypeError('invalid header'), /settings of this endpoint/, /authentication/],
  ];
  for (const [error, sentence, remedy] of cases) {
    const found = wordsOf(error);
    assert.match(found.sentence, sentence);
    assert.match(found.remedy, remedy);
    assert.not.match(Object.values(found).join(' '), INTERNAL);
    assert.not.match(Object.values(found).join(' '), /10\.0\.0|EPROTO/);
  }
  const { message } = timeoutFailure(10_000, null);
  assert.equal(failureWords(attempt({ error_class: 'timeout', error: message })), {
    label: 'timed out',
    sentence: 'Your server did not answer within 10.0 s.',
    remedy: 'Store the message, answer with a status of 2xx at once, and process it afterwards.',
  });
  const ours = failureWords(
    attempt({ error_class: 'function', error: 'The function of the subscription crm failed.' }),
  );
  assert.match(ours.sentence, 'on our side');
  const token = failureWords(
    attempt({ error_class: 'connect', error: 'No access token from id.example.com: no route.' }),
  );
  assert.match(token.sentence, 'no access token from id.example.com,');
});

words('a status has its name, and what to do about it', () => {
  const of = (http_status: number, error: string | null = null) => {
    const { label, sentence, remedy } = failureWords(attempt({ http_status, error }));
    return `${label}: ${sentence} ${remedy}`;
  };
  assert.is(
    of(500),
    '500: Your server answered 500 Internal Server Error. Look for the error in the log of your server.',
  );
  assert.is(of(418), '418: Your server answered 418. The response of your server may say why.');
  assert.match(of(401), '401 Unauthorized. Check the authentication');
  const { message } = redirectFailure(301, { location: '/new' })!;
  assert.match(of(301, message), '301 Moved Permanently. We do not follow redirects');
  const tls = 'The endpoint answered 400. a:443 speaks TLS, so its URL has to begin with https://.';
  assert.match(of(400, tls), 'It speaks TLS: begin the URL');
  assert.is(failureLabel('dns', null), 'host not found');
});

words('each state of a delivery says what we do next', () => {
  const of = (fields: object, endpoint = 'active') =>
    deliveryWords({
      status: 'retry',
      reason: null,
      attempts: 3,
      endpoint_metadata: { uid: 'e', name: 'shop', url: null, status: endpoint },
      ...fields,
    });
  const starts = {
    breaker: 'We paused sending because your server did not accept our requests.',
    rate_limit: 'The endpoint has a rate limit',
    slow: 'Your server answers slowly',
    lookup: 'This message is delayed on our side.',
    function: 'This message is delayed on our side.',
  };
  for (const [name, reason] of Object.entries(WAIT_REASONS)) {
    const { remark, sentence } = of({ status: 'scheduled', reason });
    assert.ok(sentence.startsWith(starts[name as keyof typeof starts]), `${name}: ${sentence}`);
    assert.not.match(remark + sentence, INTERNAL);
  }
  assert.match(of({}).sentence, 'We try again by ourselves.');
  assert.match(of({ status: 'failure' }).sentence, 'We tried 3 times');
  assert.match(of({ status: 'scheduled' }, 'paused').sentence, 'until it is activated');
  assert.match(
    of({ status: 'discarded', reason: 'The endpoint is inactive: It answered 410 Gone.' }).sentence,
    'because the endpoint was inactive',
  );
  const dropped = 'The function of the subscription crm returned null: nothing is sent.';
  assert.match(of({ status: 'discarded', reason: dropped }).sentence, 'not meant for');
  assert.match(
    inactiveSentence({ status_reason: 'All its delivery attempts failed for 5 days.' }),
    'accepted no message for 5 days',
  );
});

words('an error of the API is told without settings and commands', () => {
  const of = (error: GatewayError) =>
    errorSentence(
      new GatewayApiError(error.httpStatus, {
        status: false,
        data: null,
        message: error.message,
        code: error.code,
        fix: error.fix,
      } as never),
    );
  const full = {
    things: 'endpoints of this owner',
    max: 20,
    setting: 'limits.endpoints_per_owner',
  };
  for (const [error, sentence] of [
    [new GatewayError('project_full', full), 'as many as you may have'],
    [new GatewayError('not_found', { thing: 'endpoint', id: 'x' }), 'Not found'],
    [new GatewayError('conflict', { sentence: 'its endpoint is inactive' }), 'Activate it first.'],
    [new GatewayError('kv_away', { outcome: 'nothing was done' } as never), 'in a minute'],
  ] as const) {
    assert.match(of(error), sentence);
    assert.not.match(of(error), INTERNAL);
  }
  assert.match(errorSentence(new TypeError('Failed to fetch')), 'Check your connection');
});

words('the sample code accepts what we sign, and nothing else', async () => {
  const { verify } = (await import(`data:text/javascript,${encodeURIComponent(VERIFY)}`)) as {
    verify(body: string, headers: Record<string, string>, secret: string): void;
  };
  const [body, timestamp] = ['{"n":1}', String(Math.floor(Date.now() / 1000))];
  const key = Buffer.from('a key of 24 bytes, or so');
  const sign = (at: string, by: Buffer | string) =>
    `v1,${createHmac('sha256', by).update(`m.${at}.${body}`).digest('base64')}`;
  const headers = (signature: string, at = timestamp) => ({
    'webhook-id': 'm',
    'webhook-timestamp': at,
    'webhook-signature': signature,
  });
  const secret = `whsec_${key.toString('base64')}`;
  verify(body, headers(`${sign(timestamp, 'old')} ${sign(timestamp, key)}`), secret);
  verify(body, headers(sign(timestamp, 'a text of mine')), 'a text of mine');
  assert.throws(() => verify(`${body} `, headers(sign(timestamp, key)), secret), /not match/);
  assert.throws(() => verify(body, headers(sign('1', key), '1'), secret), /too old/);
  assert.throws(() => verify(body, {}, secret), /missing/);
});

words.run();
