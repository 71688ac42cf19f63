import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tlsRemark } from '#agent/destinations/http/failure';
import { CONNECTION_REASONS, networkReason } from '#core/errors/connection-errors';
import { inactiveReason } from '#ingest/routing/first-delivery';
import type { Endpoint } from '#ingest/routing/project';
import {
  ATTEMPT_ERRORS,
  attemptErrorOf,
  DISCARD_REASONS,
  discardReasonOf,
  INACTIVE_REASONS,
  inactiveReasonOf,
  NO_ACCESS_TOKEN,
} from '#store/deliveries/stored-reasons';

const reasons = suite('store/deliveries/stored-reasons');

reasons('each reason for which a delivery is discarded has its code', () => {
  const inactive = (statusReason: string | null) => inactiveReason({ statusReason } as Endpoint);
  const written = {
    project_deleted: [DISCARD_REASONS.project_deleted],
    endpoint_deleted: [inactiveReason(undefined)],
    endpoint_inactive: [inactive(null), inactive(INACTIVE_REASONS.gone)],
    function: [`${DISCARD_REASONS.function}crm returned null: nothing is sent.`],
  };
  assert.equal(Object.keys(written), Object.keys(DISCARD_REASONS));
  for (const [code, sentences] of Object.entries(written))
    for (const sentence of sentences) assert.is(discardReasonOf(sentence), code);
  assert.is(discardReasonOf('No retry is left after attempt 3.'), null);
  assert.is(discardReasonOf(null), null);
});

reasons('each reason for which an endpoint is deactivated has its code', () => {
  assert.is(inactiveReasonOf(INACTIVE_REASONS.gone), 'gone');
  assert.is(inactiveReasonOf(`${INACTIVE_REASONS.failing}5 days.`), 'failing');
  assert.is(inactiveReasonOf('The endpoint was paused over the API.'), null);
});

reasons('an error of an attempt has the code of its sentence', () => {
  const remark = tlsRemark(
    new URL('http://a.example.com:443'),
    400,
    'plain HTTP request was sent to HTTPS port',
  );
  const written = {
    no_access_token: `${NO_ACCESS_TOKEN}id.example.com: ${CONNECTION_REASONS.certificate_expired}.`,
    incomplete_response: 'a.example.com closed the connection in the middle of its answer.',
    tls_required: `The endpoint answered 400. ${remark}`,
    nothing_listens: `No connection to a: ${networkReason({ code: 'ECONNREFUSED' })}.`,
  };
  const tls = ([code, reason]: [string, string]) => [code, `No secure connection to a: ${reason}.`];
  const all = { ...Object.fromEntries(Object.entries(CONNECTION_REASONS).map(tls)), ...written };
  for (const code of ATTEMPT_ERRORS) {
    const error_class = code === 'incomplete_response' ? null : 'tls';
    assert.is(attemptErrorOf({ error_class, error: all[code]! }), code);
  }
  assert.is(attemptErrorOf({ error_class: 'status', error: 'The endpoint answered 503.' }), null);
  assert.is(attemptErrorOf({ error_class: null, error: null }), null);
});

reasons.run();
