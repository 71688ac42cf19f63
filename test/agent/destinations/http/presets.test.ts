import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { presetRequest } from '#agent/destinations/http/presets/presets';
import type { InFlightDelivery } from '#agent/model/delivery';
import type { Told } from '#agent/model/notification-text';
import { operationalData, operationalType } from '#agent/model/operational-events';
import { resolveConfig } from '#core/config/config';
import { newId } from '#core/events/ids';
import { SERVICE_FORMATS, type ServiceFormat } from '#store/config/endpoints';

const requests = suite('agent/destinations/http/presets');

const { config: CONFIG } = resolveConfig({
  env: {},
  file: { host: 'https://gateway.example.com', env: 'production' },
});
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Body = any;

const TARGET = { url: 'https://api.eu.example.com/in', key: 'K1' };

function failing(fields: Partial<Told> = {}): Told {
  return {
    id: newId(),
    kind: 'endpoint_failing',
    projectId: newId(),
    subject: newId(),
    facts: { failures: 3, error: 'It answered 500.' },
    createdAt: new Date('2025-03-31T14:05:09.123Z'),
    project: 'orders',
    organisation: 'Shop Ltd',
    name: 'warehouse',
    url: 'https://shop.example.com/hooks/incoming',
    ...fields,
  };
}

function deliveryOf(eventType: string, data: string, attempts = 0): InFlightDelivery {
  return {
    projectId: newId(),
    id: newId(),
    occurredAtMs: 0,
    eventId: newId(),
    endpointId: newId(),
    subscriptionId: null,
    isTransformed: false,
    attempts,
    eventType,
    sourceId: null,
    traceparent: null,
    orderKey: null,
    headers: {},
    body: Buffer.from(data),
    agentId: 1,
  };
}

function requestOf(
  type: ServiceFormat,
  notifications: readonly Told[],
  { isEnd = false, attempts = 0 } = {},
) {
  const eventType = operationalType(notifications[0]!, isEnd);
  const delivery = deliveryOf(eventType, operationalData(eventType, notifications), attempts);
  return presetRequest(type, delivery, TARGET, CONFIG) as ReturnType<typeof presetRequest> & {
    body: Body;
  };
}

const bodyOf = (type: ServiceFormat, name: string): Body =>
  requestOf(type, [failing({ name })]).body;

/** Returns the objects below a value. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Record<string, unknown>;
  for (const below of Object.values(value)) yield* objectsIn(below);
}

const textsOf = (body: Body, type: string) =>
  [...objectsIn(body)].filter((it) => it['type'] === type).map((it) => it['text'] as string);

const visible = (text: string) => text.replaceAll('\u200b', '');

// Names that tenants choose, and what each would become in some service.
const MARKUP = [
  '[Restore access](https://evil.example/login)',
  '![x](https://evil.example/x.png)',
  '*bold* **bold** _italic_ ~gone~ ~~gone~~ `code`',
  '<!channel> <@U123> <https://evil.example|Restore access>',
  '@channel @all @here #general :fire: ~town-square',
  'https://evil.example/login www.evil.example evil.example',
  '<b>x</b> <img src=x onerror=alert(1)> &lt;b&gt; a & b',
  '{{DATE(2025-01-01T00:00:00Z, SHORT)}} \\*x\\* # x',
];

requests('in Slack, a name is shown as typed: its blocks contain no markup', () => {
  for (const name of MARKUP) {
    const { blocks } = bodyOf('slack', name);
    assert.equal(textsOf(blocks, 'mrkdwn'), []);
    assert.is(textsOf(blocks, 'plain_text')[0]!.startsWith(`Endpoint ${name.slice(0, 50)}`), true);
    assert.ok(
      textsOf(blocks, 'text').some((it) => it.startsWith(`${name} (`)),
      name,
    );
    for (const { type, url } of objectsIn(blocks))
      if (type === 'link') assert.match(url as string, /^https:\/\/gateway\.example\.com\//);
  }
});

requests('the text for Mattermost and Rocket.Chat shows a name as typed', () => {
  for (const name of MARKUP) {
    const { text } = bodyOf('slack', name) as { text: string };
    assert.not.match(text, /<|>|@\w|:\/\/evil|\.evil|evil\.example|:fire:|#general/);
    const escape = /\\([\\`*~[\]_])/g;
    assert.not.match(text.replaceAll(escape, ''), /[*~`[\]]|\b_\b/, name);
    const shown = visible(text)
      .replaceAll(escape, '$1')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
    assert.ok(shown.includes(`Endpoint: ${name} (`), shown);
  }
});

requests('in Teams, a name is shown as typed: no element of the card is Markdown', () => {
  for (const name of MARKUP) {
    const body = bodyOf('teams', name);
    assert.equal([textsOf(body, 'TextBlock'), textsOf(body, 'FactSet')], [[], []]);
    const runs = textsOf(body, 'TextRun');
    assert.ok(runs.some((it) => visible(it).startsWith(`${name} (`)));
    assert.ok(!runs.some((it) => it.includes('{{')));
    for (const { type, url } of objectsIn(body))
      if (type === 'Action.OpenUrl')
        assert.match(url as string, /^https:\/\/gateway\.example\.com\//);
  }
});

requests('in Opsgenie, a name is shown as typed, in HTML and in text', () => {
  for (const name of MARKUP) {
    const { message, details } = bodyOf('opsgenie', name);
    for (const text of [message, details.Endpoint] as string[])
      assert.not.match(text, /[<&][a-z/!]/i);
    assert.ok(visible(details.Endpoint).startsWith(`${name} (`));
  }
});

requests('line breaks, controls and invisible characters of a name reach no channel', () => {
  const name = 'a\r\nb\u2028c\u202ed\u2066e\u0000f\u00adg\u061ch\ufeffi\u{e0041}j\ud83d';
  for (const type of SERVICE_FORMATS) {
    const text = JSON.stringify(bodyOf(type, name));
    assert.match(visible(text), 'a b cde fghij\ufffd (');
    assert.not.match(text, /\\r|\\u|\u2028|\u202e|\u2066|\u00ad|\u061c|\ufeff|\u{e0041}/u);
  }
  const family = '👨‍👩‍👧 نمی‌خواهم';
  assert.match(bodyOf('pagerduty', family).payload.summary, family);
});

const STORM = {
  'short names': (n: number) => failing({ name: `endpoint ${n}` }),
  'long names and addresses': (n: number) =>
    failing({
      name: `${n} ${'🦀'.repeat(120)}`,
      url: `https://example.com/${'x'.repeat(2000)}`,
      facts: { failures: 3, error: 'é'.repeat(2000) },
    }),
};

for (const [what, make] of Object.entries(STORM))
  requests(`ten notifications with ${what} are all named in a message of Slack and Teams`, () => {
    const projectId = newId();
    const group = Array.from({ length: 10 }, (_, n) => ({ ...make(n), projectId }));
    for (const type of ['slack', 'teams'] as const) {
      const { body } = requestOf(type, group);
      const whole = JSON.stringify(body);
      for (const { subject } of group) assert.ok(whole.includes(subject), `${type} lacks one`);
      assert.ok(Buffer.byteLength(whole) <= 28_000);
      const links = [...objectsIn(body)].flatMap(({ url }) =>
        typeof url === 'string' ? [url] : [],
      );
      assert.is(links.filter((url) => /\/endpoints\/[0-9a-f-]{36}$/.test(url)).length, 10);
      if (type === 'teams') {
        assert.ok(Buffer.byteLength(whole) <= 20_000, `${Buffer.byteLength(whole)}`);
        continue;
      }
      assert.ok(body.text.length <= 5_000 && JSON.stringify(body.blocks).length <= 13_000);
      assert.ok(textsOf(body.blocks, 'plain_text').every((it) => it.length <= 150));
      for (const { subject } of group) assert.ok(body.text.includes(subject), 'text lacks one');
    }
  });

requests('after a refusal the message is shorter, and still names all', () => {
  const group = Array.from({ length: 10 }, (_, n) => STORM['long names and addresses'](n));
  const sizes = [0, 1, 2, 3, 50].map((attempts) => {
    const { body } = requestOf('teams', [group[0]!], { attempts });
    assert.ok(JSON.stringify(body).includes(group[0]!.subject));
    return JSON.stringify(body).length;
  });
  assert.equal(
    sizes,
    [...sizes].sort((a, b) => b - a),
  );
  assert.ok(sizes.at(-1)! < sizes[0]!);
});

requests('PagerDuty and Opsgenie close what they opened, in the region of the endpoint', () => {
  const one = failing();
  const trigger = requestOf('pagerduty', [one]);
  const resolve = requestOf('pagerduty', [one], { isEnd: true });
  assert.is(trigger.url, 'https://api.eu.example.com/v2/enqueue');
  assert.equal(
    [trigger.body.routing_key, trigger.body.event_action, trigger.body.payload.severity],
    ['K1', 'trigger', 'error'],
  );
  assert.equal([resolve.body.event_action, resolve.body.dedup_key], ['resolve', one.id]);
  assert.is(trigger.body.dedup_key, one.id);
  const alert = requestOf('opsgenie', [one]);
  assert.equal(
    [alert.headers, alert.body.alias, alert.body.priority],
    [['authorization', 'GenieKey K1'], one.id, 'P2'],
  );
  assert.is(
    requestOf('opsgenie', [one], { isEnd: true }).url,
    `https://api.eu.example.com/v2/alerts/${one.id}/close?identifierType=alias`,
  );
  // The end of one of them must not close the alert about all.
  const several = requestOf('pagerduty', [one, failing()]);
  assert.is(several.body.dedup_key, `${one.id}-2`);
});

requests('other events, and data of another form, are shown as they are', () => {
  const texts = [
    ['order.paid', '{"note":"<!channel> [x](https://evil.example)"}'],
    ['gateway.endpoint.failing', '{"note":"<!channel> [x](https://evil.example)","project":7}'],
    ['gateway.endpoint.failing', 'null'],
  ] as const;
  for (const [eventType, data] of texts)
    for (const format of SERVICE_FORMATS) {
      const { body } = presetRequest(format, deliveryOf(eventType, data), TARGET, CONFIG);
      const shown = JSON.stringify(body);
      assert.match(visible(shown), eventType);
      if (format === 'slack') assert.not.match((body as Body).text, /<|:\/\/evil/);
    }
});

requests('what a group has in common is said once', () => {
  const projectId = newId();
  const { body } = requestOf(
    'slack',
    [1, 2, 3].map(() => failing({ projectId })),
  );
  assert.is(body.text.split('Project: orders').length, 2);
  assert.is(body.text.split('Endpoint: warehouse').length, 4);
});

requests('one notification fits the limits of each service, however long its values are', () => {
  const long = '& 🦀'.repeat(3000);
  const one = failing({
    name: long,
    project: long,
    organisation: long,
    url: long,
    facts: { error: long },
  });
  const size = (type: ServiceFormat) =>
    Buffer.byteLength(JSON.stringify(requestOf(type, [one]).body));
  assert.ok(size('teams') < 28_000);
  assert.ok(size('slack') < 100_000);
  assert.ok(size('pagerduty') < 512_000);
  const { message, description, details } = bodyOf('opsgenie', long);
  const sum = Object.entries(details as object).join().length;
  assert.ok(
    message.length <= 130 && description.length <= 15_000 && sum <= 8_000,
    `${message.length} ${sum}`,
  );
  assert.ok(requestOf('pagerduty', [one]).body.payload.summary.length <= 1024);
  const { text, blocks } = requestOf('slack', [one]).body;
  assert.ok(text.length < 40_000 && JSON.stringify(blocks).length <= 13_000);
});

requests.run();
