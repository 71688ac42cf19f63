import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { notificationText as textOf } from '#agent/model/notification-text';
import type { ClaimedNotification } from '#store/config/notifications';

const text = suite('agent/model/notification-text');

const { config: CONFIG } = resolveConfig({
  env: {},
  file: { host: 'https://gateway.example.com', root_path: '/gw', env: 'production' },
});

const notificationText = (one: ClaimedNotification, config: Parameters<typeof textOf>[1]) =>
  textOf([one], config);

function claimed(fields: Partial<ClaimedNotification>): ClaimedNotification {
  return {
    id: 'n',
    kind: 'endpoint_failing',
    projectId: 'p-1',
    subject: 'e-1',
    facts: {},
    attempts: 1,
    createdAt: new Date('2025-03-31T14:05:09.123Z'),
    project: 'orders',
    organisation: 'Shop Ltd',
    name: 'warehouse',
    url: 'https://shop:hunter2@example.com/hooks',
    admins: [],
    ...fields,
  };
}

text('an endpoint that is failing: what, where, since when, why, and what to do', () => {
  const { subject, text: body } = notificationText(
    claimed({
      facts: {
        failures: 10,
        since: '2025-03-31T14:00:00.000Z',
        error: 'The endpoint answered 500.',
      },
    }),
    CONFIG,
  );
  assert.is(subject, '[gateway] Endpoint warehouse of project orders is failing');
  assert.match(body, '10 delivery attempts in a row have failed.');
  assert.match(
    body,
    'Organisation: Shop Ltd\nProject:      orders (p-1)\nEndpoint:     warehouse (e-1)\nURL:          https://********@example.com/hooks\n',
  );
  assert.match(
    body,
    'Link:         https://gateway.example.com/gw/api/v1/projects/p-1/endpoints/e-1\n',
  );
  assert.match(
    body,
    'Last error:   The endpoint answered 500.\nSince:        2025-03-31 14:00:00 UTC\n',
  );
  assert.match(
    body,
    '  gateway retry --status failure --time 24h --project-id p-1 --endpoint-id e-1\n',
  );
  assert.match(body, 'environment production');
  assert.not.match(body, 'hunter2');
});

text('a disabled endpoint and a source each say what to do', () => {
  const disabled = notificationText(claimed({ kind: 'endpoint_disabled' }), CONFIG);
  assert.is(disabled.subject, '[gateway] Endpoint warehouse of project orders is disabled');
  assert.match(disabled.text, 'PUT /api/v1/projects/p-1/endpoints/e-1/activate');
  assert.match(disabled.text, '2025-03-31 14:05:09 UTC');
  const source = notificationText(
    claimed({ kind: 'source_failing', url: null, facts: { error: 'The broker is away.' } }),
    CONFIG,
  );
  assert.is(source.subject, '[gateway] Source warehouse of project orders is failing');
  assert.match(source.text, 'Last error:   The broker is away.');
  const paused = notificationText(
    claimed({
      kind: 'source_failing',
      url: null,
      facts: { error: 'It overran.', resumes_at: '2025-03-31T16:06:09.5+02:00' },
    }),
    CONFIG,
  );
  assert.is(paused.subject, '[gateway] Source warehouse of project orders is paused');
  assert.match(
    paused.text,
    'Reason:       It overran.\nSince:        2025-03-31 14:05:09 UTC\nTried again:  2025-03-31 14:06:09 UTC\n',
  );
  assert.match(paused.text, 'POST /api/v1/projects/p-1/sources/e-1/resume');
});

text('without a public name there is no link; a name cannot break a line', () => {
  const { host: _, ...without } = CONFIG;
  const { subject, text: body } = notificationText(
    claimed({ name: 'a\r\nBcc:\u202e x@example.com' }),
    without,
  );
  assert.not.match(body, 'Link:');
  assert.not.match(subject, '\n');
  assert.match(body, 'Endpoint:     a Bcc: x@example.com (e-1)');
});

text('several notifications share one email, which lists fifty', () => {
  const many = Array.from({ length: 52 }, (_, n) =>
    claimed({ subject: `e-${n}`, name: `shop ${n}` }),
  );
  const { subject, text: body } = textOf(many, CONFIG);
  assert.is(subject, '[gateway] 52 endpoints are failing, organisation Shop Ltd');
  assert.match(body, /^52 endpoints are failing\. Their last/);
  assert.match(body, 'Endpoint:     shop 49 (e-49)\n');
  assert.not.match(body, 'shop 50');
  assert.match(body, 'And 2 more, ');
  assert.match(body, 'What to do, of the first of them');
  assert.match(body, '--endpoint-id e-0\n');
});

text.run();
