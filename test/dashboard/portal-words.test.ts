import { createHmac } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { GatewayApiError } from '@gateway/client';
import { failureOf } from '#agent/destinations/http/failure';
import { GatewayError } from '#core/errors/errors';
import { LookupError } from '#core/http/names';
import { ProxyError } from '#core/http/proxy';
import { RefusedAddressError } from '#core/http/connect-any';
import { acceptedWords } from '#dashboard/pages/endpoints/state';
import { VERIFY } from '#dashboard/pages/endpoints/verify';
import { failureLabel, failureWords, type FailedAttempt } from '#dashboard/portal/attempts';
import { errorSentence } from '#dashboard/portal/errors';
import { deliveryWords, inactiveSentence } from '#dashboard/portal/states';
import { WAIT_REASONS, type WaitReason } from '#store/deliveries/postponed-deliveries';
import { attemptErrorOf, type DiscardReason } from '#store/deliveries/stored-reasons';

const words = suite('dashboard/portal-words');

/** Words of operators, which the owner of an endpoint does not read. */
const INTERNAL =
  /operator|agent|project|breaker|gateway|postgres|\bkv\b|function|subscription of|setting\b|allowed_networks|resolv\.conf|proxy 10|[a-z]+_[a-z]+/i;

const coded = (code: string, message = code) => Object.assign(new Error(message), { code });
const place = 'shop.example.com:8443';
const attempt = (fields: Partial<FailedAttempt>): FailedAttempt => ({
  error_class: 'status',
  http_status: null,
  error_code: null,
  duration_ms: 10_000,
  url: 'https://shop.example.com:8443/hooks',
  ...fields,
});

/** Returns the words for an error as an agent records it. */
function wordsOf(error: Error) {
  const { class: kind, message } = failureOf(error, { place, status: null });
  const error_code = attemptErrorOf({ error_class: kind, error: message });
  return failureWords(attempt({ error_class: kind, error_code }));
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
  assert.equal(failureWords(attempt({ error_class: 'timeout' })), {
    label: 'timed out',
    sentence: 'Your server did not answer within 10.0 s.',
    remedy: 'Store the message, answer with a status of 2xx at once, and process it afterwards.',
  });
  const ours = failureWords(attempt({ error_class: 'function' }));
  assert.match(ours.sentence, 'on our side');
  const token = failureWords(attempt({ error_class: 'connect', error_code: 'no_access_token' }));
  assert.match(token.sentence, 'no access token from the token URL');
});

words('a status has its name, and what to do about it', () => {
  const of = (http_status: number, error_code: FailedAttempt['error_code'] = null) => {
    const { label, sentence, remedy } = failureWords(attempt({ http_status, error_code }));
    return `${label}: ${sentence} ${remedy}`;
  };
  assert.is(
    of(500),
    '500: Your server answered 500 Internal Server Error. Look for the error in the log of your server.',
  );
  assert.is(of(418), '418: Your server answered 418. The response of your server may say why.');
  assert.match(of(401), '401 Unauthorized. Check the authentication');
  assert.match(of(301), '301 Moved Permanently. We do not follow redirects');
  assert.match(of(400, 'tls_required'), 'It speaks TLS: begin the URL');
  assert.is(failureLabel('dns', null), 'host not found');
});

words('each state of a delivery says what we do next', () => {
  const of = (fields: Partial<Parameters<typeof deliveryWords>[0]>) =>
    deliveryWords({
      status: 'retry',
      waits_for: null,
      discard_reason: null,
      attempts: 3,
      last_attempt: null,
      ...fields,
    });
  const starts: Record<WaitReason, string> = {
    breaker: 'We paused sending because your server did not accept our requests.',
    back_off: 'Your server asked for fewer requests.',
    rate_limit: 'The endpoint has a rate limit',
    slow: 'Your server answers slowly',
    lookup: 'This message is delayed on our side.',
    shortage: 'This message is delayed on our side.',
    function: 'This message is delayed on our side.',
  };
  for (const wait of Object.keys(WAIT_REASONS) as WaitReason[]) {
    const { remark, sentence } = of({ status: 'scheduled', waits_for: wait });
    assert.ok(sentence.startsWith(starts[wait]), `${wait}: ${sentence}`);
    assert.not.match(remark + sentence, INTERNAL);
  }
  assert.match(of({ waits_for: 'retry' }).sentence, 'We try again by ourselves.');
  assert.match(of({ status: 'failure' }).sentence, 'We tried 3 times');
  const gone = { duration_ms: 5, http_status: 410, error_class: 'status' };
  assert.match(of({ status: 'failure', last_attempt: gone }).sentence, 'answered 410 Gone');
  assert.match(of({ waits_for: 'paused' }).sentence, 'until it is activated');
  const discarded = (discard_reason: DiscardReason) =>
    of({ status: 'discarded', discard_reason }).sentence;
  assert.match(discarded('endpoint_inactive'), 'because the endpoint was inactive');
  assert.match(discarded('function'), 'not meant for');
  assert.match(inactiveSentence({ inactive_reason: 'failing' }), 'accepted no message for days');
  assert.match(inactiveSentence({ inactive_reason: 'gone' }), 'answered 410 Gone');
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
        conflict: (error.details as { conflict?: string }).conflict,
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
    [
      new GatewayError('conflict', { sentence: '…', conflict: 'endpoint_inactive' }),
      'Activate it first.',
    ],
    [new GatewayError('conflict', { sentence: '…' }), 'changed it meanwhile'],
    [new GatewayError('kv_away', { outcome: 'nothing was done' } as never), 'in a minute'],
  ] as const) {
    assert.match(of(error), sentence);
    assert.not.match(of(error), INTERNAL);
  }
  assert.match(errorSentence(new TypeError('Failed to fetch')), 'Check your connection');
});

words('the share of accepted requests agrees with their number', () => {
  const of = (success: number, failure: number) => acceptedWords({ success, failure });
  assert.is(of(0, 1), '0.0% of 1 request was accepted');
  assert.is(of(1, 1), '50% of 2 requests were accepted');
  assert.is(of(0, 0), 'No requests');
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
