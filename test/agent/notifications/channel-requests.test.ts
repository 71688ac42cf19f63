import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { channelRequest, type RequestType } from '#agent/notifications/channel-requests';
import { resolveConfig } from '#core/config/config';
import { newId } from '#core/events/ids';
import type { ChannelNotification } from '#store/config/notification-channels';

const requests = suite('agent/notifications/channel-requests');

const { config: CONFIG } = resolveConfig({
  env: {},
  file: { host: 'https://gateway.example.com', env: 'production' },
});
const SETTINGS = { url: 'https://example.com/in', api_url: 'https://example.com' };

function failing(fields: Partial<ChannelNotification> = {}): ChannelNotification {
  return {
    id: newId(),
    kind: 'endpoint_failing',
    projectId: newId(),
    subject: newId(),
    facts: { failures: 3, error: 'It answered 500.' },
    attempts: 1,
    createdAt: new Date('2025-03-31T14:05:09.123Z'),
    project: 'orders',
    organisation: 'Shop Ltd',
    name: 'warehouse',
    url: 'https://shop.example.com/hooks/incoming',
    admins: [],
    n: '1',
    isRecovery: false,
    queuedAt: new Date(),
    ...fields,
  };
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Body = any;

function requestOf(type: RequestType, notifications: readonly ChannelNotification[]) {
  const { request, count } = channelRequest({ type, settings: SETTINGS }, notifications, CONFIG);
  return { body: request.body as Body, count };
}

const bodyOf = (type: RequestType, name: string): Body => requestOf(type, [failing({ name })]).body;

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
  for (const type of ['slack', 'teams', 'pagerduty', 'opsgenie', 'webhook'] as const) {
    const text = JSON.stringify(bodyOf(type, name));
    assert.match(visible(text), 'a b cde fghij\ufffd (');
    assert.not.match(text, /\\r|\\u|\u2028|\u202e|\u2066|\u00ad|\u061c|\ufeff|\u{e0041}/u);
  }
  const family = '👨‍👩‍👧 نمی‌خواهم';
  assert.match(bodyOf('webhook', family).title, family);
});

/** Sends a queue as the outbox does, and returns the bodies. */
function sendAll(type: RequestType, queue: readonly ChannelNotification[]): Body[] {
  const bodies = [];
  for (let left = queue; left.length > 0;) {
    const { body, count } = requestOf(type, left);
    bodies.push(body);
    left = left.slice(count);
  }
  return bodies;
}

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
  requests(
    `fifty notifications with ${what} are all named in messages that Slack and Teams take`,
    () => {
      const queue = Array.from({ length: 50 }, (_, n) => make(n));
      for (const type of ['slack', 'teams'] as const) {
        const bodies = sendAll(type, queue);
        const whole = bodies.map((it) => JSON.stringify(it)).join();
        for (const { subject } of queue) assert.ok(whole.includes(subject), `${type} lacks one`);
        for (const body of bodies) {
          assert.ok(Buffer.byteLength(JSON.stringify(body)) <= 28_000);
          if (type === 'teams') continue;
          assert.ok(body.text.length <= 5_000 && JSON.stringify(body.blocks).length <= 13_000);
          assert.ok(textsOf(body.blocks, 'plain_text').every((it) => it.length <= 150));
        }
        const texts = bodies.map((it) => it.text).join();
        if (type === 'slack')
          for (const { subject } of queue) assert.ok(texts.includes(subject), 'text lacks one');
      }
    },
  );

requests('what a group has in common is said once', () => {
  const projectId = newId();
  const { body } = requestOf(
    'slack',
    [1, 2, 3].map(() => failing({ projectId })),
  );
  assert.is(body.text.split('Organisation: Shop Ltd').length, 2);
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
  const size = (type: RequestType) =>
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
