import type { ChannelNotification, ChannelRow, ChannelType } from '@gateway/store/config';
import { signingKey, standardSignature } from '../attempt/signature.js';
import type { Fact } from './notification-text.js';

/** A message for a channel about notifications of one kind, or about the end of their cause. */
export interface ChannelMessage {
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
  /** Whether a message may be about several notifications. */
  readonly isGrouped: boolean;
  request(message: ChannelMessage, settings: ChannelRow['settings']): ChannelRequest;
}

/** The kinds that page nobody at night; all others are errors. */
const SEVERITY: Readonly<Record<string, string>> = {
  channel_test: 'info',
  endpoint_disabling: 'warning',
  endpoint_exhausted: 'warning',
};
// The services refuse or cut longer texts.
const SLACK_HEADER_MAX = 150;
const SLACK_SECTION_MAX = 3000;
const PAGERDUTY_SUMMARY_MAX = 1024;
const OPSGENIE_MESSAGE_MAX = 130;

/** How a message becomes a request, for each type of channel. */
export const CHANNEL_REQUESTS: Readonly<Record<RequestType, ChannelBehaviour>> = {
  // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
  slack: {
    isGrouped: true,
    request: ({ subject, opening, facts }, { url = '' }) => {
      const lines = facts.map((some) =>
        some.map(([name, value]) => `*${name}:* ${escapeSlack(value)}`).join('\n'),
      );
      const text = [escapeSlack(opening), ...lines].join('\n\n').slice(0, SLACK_SECTION_MAX);
      return {
        url,
        body: {
          text: escapeSlack(subject),
          blocks: [
            { type: 'header', text: { type: 'plain_text', text: cut(subject, SLACK_HEADER_MAX) } },
            { type: 'section', text: { type: 'mrkdwn', text } },
          ],
        },
      };
    },
  },
  // An Adaptive Card for the Workflows webhook:
  // https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook
  teams: {
    isGrouped: true,
    request: ({ subject, opening, facts }, { url = '' }) => ({
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
                { type: 'TextBlock', size: 'Medium', weight: 'Bolder', wrap: true, text: subject },
                { type: 'TextBlock', wrap: true, text: opening },
                ...facts.map((some) => ({
                  type: 'FactSet',
                  facts: some.map(([title, value]) => ({ title, value })),
                })),
              ],
            },
          },
        ],
      },
    }),
  },
  // https://developer.pagerduty.com/docs/events-api-v2/trigger-events/
  pagerduty: {
    isGrouped: false,
    request: (message, { api_url = '', routing_key }) => {
      const { notifications, isRecovery, subject, opening, facts, env } = message;
      const { id, kind, createdAt, project } = notifications[0]!;
      const payload = {
        summary: cut(subject, PAGERDUTY_SUMMARY_MAX),
        source: `gateway ${env}`,
        severity: SEVERITY[kind] ?? 'error',
        timestamp: createdAt.toISOString(),
        component: project ?? '',
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
    isGrouped: false,
    request: (message, { api_url = '', api_key = '' }) => {
      const { notifications, isRecovery, subject, opening, facts, env } = message;
      const { id, kind } = notifications[0]!;
      const source = `gateway ${env}`;
      const headers = () => ({ authorization: `GenieKey ${api_key}` });
      if (isRecovery)
        return {
          url: below(api_url, `/v2/alerts/${id}/close?identifierType=alias`),
          headers,
          body: { source, note: subject },
        };
      return {
        url: below(api_url, '/v2/alerts'),
        headers,
        body: {
          message: cut(subject, OPSGENIE_MESSAGE_MAX),
          alias: id,
          description: opening,
          details: Object.fromEntries(facts[0]!),
          tags: ['gateway', kind],
          source,
          priority: { info: 'P5', warning: 'P3' }[SEVERITY[kind] ?? ''] ?? 'P2',
        },
      };
    },
  },
  webhook: {
    isGrouped: false,
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

/** Escapes the control characters of Slack's markup: https://docs.slack.dev/messaging/formatting-message-text */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function cut(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}

function below(base: string, path: string): string {
  return base.replace(/\/+$/, '') + path;
}
