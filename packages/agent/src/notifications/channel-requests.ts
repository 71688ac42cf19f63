import { clip } from '@gateway/core/json';
import type { Config } from '@gateway/core/config';
import type { ChannelNotification, ChannelRow, ChannelType } from '@gateway/store/config';
import { signingKey, standardSignature } from '../destinations/http/signature.js';
import { notificationParts, oneLine, type Fact } from './notification-text.js';

/** A message for a channel about notifications of one kind, or about the end of their cause. */
interface ChannelMessage {
  readonly notifications: readonly ChannelNotification[];
  readonly isRecovery: boolean;
  readonly subject: string;
  readonly opening: string;
  readonly facts: readonly (readonly Fact[])[];
  readonly env: string;
}

export interface ChannelRequest {
  readonly url: string;
  readonly body: unknown;
  readonly headers?: (body: Buffer) => Readonly<Record<string, string>>;
}

/** The types of channels that receive requests; the others receive events. */
export type RequestType = Exclude<ChannelType, 'events'>;

interface ChannelBehaviour {
  /** The part of the service's limits that a body uses. Undefined if a message has one notification. */
  usage?(body: unknown): number;
  request(message: ChannelMessage, settings: ChannelRow['settings']): ChannelRequest;
}

/** The kinds that page nobody at night; all others are errors. */
const SEVERITY: Readonly<Record<string, string>> = {
  channel_test: 'info',
  endpoint_disabling: 'warning',
  endpoint_exhausted: 'warning',
};
// The services refuse or cut longer texts.
/** For titles and values. PagerDuty takes 1,024 characters, and Opsgenie 8,000 in all. */
const VALUE_MAX = 500;
const SLACK_HEADER_MAX = 150;
/** Slack refuses about 13,000 characters of blocks with `msg_blocks_too_long`. */
const SLACK_BLOCKS_MAX = 12_000;
/** Slack and Mattermost recommend at most 4,000 characters, and Rocket.Chat takes 5,000. */
const SLACK_TEXT_MAX = 4_000;
/** Teams documents 28 KB, and counts more than the bytes of the request. */
const TEAMS_MAX = 20_000;
const OPSGENIE_MESSAGE_MAX = 130;
const LINK = 'Link';

/**
 * Returns the request to a channel about the first of these notifications, of one kind, and how many
 * they are: as many as the service takes in a message.
 */
export function channelRequest(
  { type, settings }: { readonly type: RequestType; readonly settings: ChannelRow['settings'] },
  notifications: readonly ChannelNotification[],
  config: Pick<Config, 'host' | 'root_path' | 'server' | 'env'>,
): { readonly request: ChannelRequest; readonly count: number } {
  const { usage, request: requestOf } = CHANNEL_REQUESTS[type];
  for (let count = usage ? notifications.length : 1; ;) {
    const some = notifications.slice(0, count);
    const { isRecovery } = some[0]!;
    const { subject, opening, facts } = notificationParts(some, config);
    const message = {
      notifications: some,
      isRecovery,
      facts: commonFirst(
        facts.map((of) => of.map(([name, value]) => [name, clip(value, VALUE_MAX)])),
      ),
      env: config.env,
      subject: clip(isRecovery ? `Resolved: ${subject}` : subject, VALUE_MAX),
      opening: isRecovery ? 'This is over.' : opening,
    };
    const request = requestOf(message, settings);
    const used = usage?.(request.body) ?? 0;
    if (used <= 1 || count === 1) return { request, count };
    count = Math.max(1, Math.min(count - 1, Math.floor(count / used)));
  }
}

/** Moves the facts that all notifications have in common to an entry before theirs. */
function commonFirst(facts: readonly (readonly Fact[])[]): readonly (readonly Fact[])[] {
  if (facts.length === 1) return facts;
  const isCommon = ([name, value]: Fact) =>
    facts.every((of) => of.some((it) => it[0] === name && it[1] === value));
  return [
    facts[0]!.filter(isCommon),
    ...facts.map((of) => of.filter((fact) => !isCommon(fact))),
  ].filter((of) => of.length > 0);
}

/** How a message becomes a request, for each type of channel. */
const CHANNEL_REQUESTS: Readonly<Record<RequestType, ChannelBehaviour>> = {
  // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
  // The elements of `rich_text` are not markup. Mattermost and Rocket.Chat show `text` alone.
  slack: {
    usage: (body) => {
      const { text, blocks } = body as { text: string; blocks: unknown };
      return Math.max(
        text.length / SLACK_TEXT_MAX,
        JSON.stringify(blocks).length / SLACK_BLOCKS_MAX,
      );
    },
    request: ({ subject, opening, facts }, { url = '' }) => {
      const title = clip(subject, SLACK_HEADER_MAX);
      const section = (elements: readonly unknown[]) => ({ type: 'rich_text_section', elements });
      const textOf = (text: string) => ({ type: 'text', text });
      const elementsOf = ([name, value]: Fact) => [
        { type: 'text', text: `\n${name}: `, style: { bold: true } },
        name === LINK ? { type: 'link', url: value } : textOf(value),
      ];
      const lines = facts.map((of) => of.map((fact) => slackLine(fact)).join('\n'));
      return {
        url,
        body: {
          text: [plainInMarkdown(subject), plainInMarkdown(opening), ...lines].join('\n\n'),
          mrkdwn: false,
          blocks: [
            { type: 'header', text: { type: 'plain_text', text: title, emoji: false } },
            {
              type: 'rich_text',
              elements: [
                section([textOf(opening)]),
                ...facts.map((of) => section([textOf('\n'), ...of.flatMap(elementsOf)])),
              ],
            },
          ],
        },
      };
    },
  },
  // An Adaptive Card for the Workflows webhook:
  // https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook
  // A TextBlock and a Fact are Markdown, a TextRun is not.
  teams: {
    usage: (body) => Buffer.byteLength(JSON.stringify(body)) / TEAMS_MAX,
    request: ({ subject, opening, facts }, { url = '' }) => {
      const run = (text: string, style = {}) => ({
        type: 'TextRun',
        ...style,
        text: undated(text),
      });
      const block = (...inlines: readonly unknown[]) => ({ type: 'RichTextBlock', inlines });
      const link = (to: string) => ({ selectAction: { type: 'Action.OpenUrl', url: to } });
      return {
        url,
        body: {
          type: 'message',
          attachments: [
            {
              contentType: 'application/vnd.microsoft.card.adaptive',
              contentUrl: null,
              content: {
                $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
                type: 'AdaptiveCard',
                version: '1.4',
                body: [
                  block(run(subject, { size: 'Medium', weight: 'Bolder' })),
                  block(run(opening)),
                  ...facts.map((of) => ({
                    type: 'Container',
                    separator: true,
                    items: of.map(([name, value]) =>
                      block(
                        run(`${name}: `, { weight: 'Bolder' }),
                        run(value, name === LINK ? link(value) : {}),
                      ),
                    ),
                  })),
                ],
              },
            },
          ],
        },
      };
    },
  },
  // https://developer.pagerduty.com/docs/events-api-v2/trigger-events/
  pagerduty: {
    request: (message, { api_url = '', routing_key }) => {
      const { notifications, isRecovery, subject, opening, facts, env } = message;
      const { id, kind, createdAt, project } = notifications[0]!;
      const payload = {
        summary: subject,
        source: `gateway ${env}`,
        severity: SEVERITY[kind] ?? 'error',
        timestamp: createdAt.toISOString(),
        component: oneLine(project ?? ''),
        class: kind,
        custom_details: { description: opening, ...Object.fromEntries(facts[0]!) },
      };
      return {
        url: below(api_url, '/v2/enqueue'),
        body: {
          routing_key,
          event_action: isRecovery ? 'resolve' : 'trigger',
          dedup_key: id,
          ...(!isRecovery && { payload, client: 'gateway' }),
        },
      };
    },
  },
  // https://docs.opsgenie.com/docs/alert-api
  opsgenie: {
    request: (message, { api_url = '', api_key = '' }) => {
      const { notifications, isRecovery, subject, opening, facts, env } = message;
      const { id, kind } = notifications[0]!;
      const source = `gateway ${env}`;
      const headers = () => ({ authorization: `GenieKey ${api_key}` });
      if (isRecovery)
        return {
          url: below(api_url, `/v2/alerts/${id}/close?identifierType=alias`),
          headers,
          body: { source, note: plainInHtml(subject) },
        };
      return {
        url: below(api_url, '/v2/alerts'),
        headers,
        body: {
          message: plainInHtml(clip(subject, OPSGENIE_MESSAGE_MAX)),
          alias: id,
          description: opening,
          details: Object.fromEntries(facts[0]!.map(([name, value]) => [name, plainInHtml(value)])),
          tags: ['gateway', kind],
          source,
          priority: { info: 'P5', warning: 'P3' }[SEVERITY[kind] ?? ''] ?? 'P2',
        },
      };
    },
  },
  webhook: {
    request: (message, { url = '', secret }) => {
      const { notifications, isRecovery, subject, opening, facts } = message;
      const { id, kind, createdAt, projectId, project, subject: about } = notifications[0]!;
      const action = isRecovery ? 'resolve' : 'trigger';
      return {
        url,
        body: {
          id,
          type: kind,
          action,
          created_at: createdAt.toISOString(),
          project: { uid: projectId, name: project },
          about,
          title: subject,
          text: opening,
          facts: Object.fromEntries(facts[0]!),
        },
        headers: (body) => signed(`${id}.${action}`, secret, body),
      };
    },
  },
};

/** Returns the headers of Standard Webhooks, with a signature if there is a secret. */
function signed(id: string, secret: string | undefined, body: Buffer): Record<string, string> {
  const seconds = Math.floor(Date.now() / 1000);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    ...(secret !== undefined && {
      'webhook-signature': standardSignature([signingKey(secret)], id, seconds, body),
    }),
  };
}

function slackLine([name, value]: Fact): string {
  return `${name}: ${name === LINK ? escapeSlack(value) : plainInMarkdown(value)}`;
}

/** Escapes the control characters of Slack's markup: https://docs.slack.dev/messaging/formatting-message-text */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

const INVISIBLE = '\u200b';

/**
 * Escapes a text for services that read Slack's `text` as Markdown. An invisible character breaks
 * what has no escape: mentions, emoji names and addresses, which would become links.
 */
function plainInMarkdown(text: string): string {
  const escaped = text
    .replace(/[\\`*~[\]]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\\$&')
    .replace(/@|#(?=\w)|\.(?=[a-z])|:(?=\/\/|[\w+-]*[a-z][\w+-]*:)/gi, `$&${INVISIBLE}`);
  return escapeSlack(escaped);
}

/** Opsgenie shows messages as HTML in some places and as text in others. */
function plainInHtml(text: string): string {
  return text.replace(/[<&](?=[a-z/!?#])/gi, `$&${INVISIBLE}`);
}

/** Breaks the functions for dates and times: https://learn.microsoft.com/en-us/adaptive-cards/authoring-cards/text-features */
function undated(text: string): string {
  return text.replaceAll('{{', `{${INVISIBLE}{`);
}

function below(base: string, path: string): string {
  return base.replace(/\/+$/, '') + path;
}
