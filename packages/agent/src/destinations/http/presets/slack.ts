import { clip } from '@gateway/core/json';
import type { Fact } from '../../../model/notification-text.js';
import { INVISIBLE, LINK, type Preset } from './message.js';

const HEADER_MAX = 150;
/** Slack refuses about 13,000 characters of blocks with `msg_blocks_too_long`. */
const BLOCKS_MAX = 12_000;
/** Slack and Mattermost recommend at most 4,000 characters, and Rocket.Chat takes 5,000. */
const TEXT_MAX = 4_000;

/**
 * https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 * The elements of `rich_text` are not markup. Mattermost and Rocket.Chat show `text` alone.
 */
export const slack: Preset = {
  usage(body) {
    const { text, blocks } = body as { text: string; blocks: unknown };
    return Math.max(text.length / TEXT_MAX, JSON.stringify(blocks).length / BLOCKS_MAX);
  },
  request({ subject, opening, facts }) {
    const title = clip(subject, HEADER_MAX);
    const section = (elements: readonly unknown[]) => ({ type: 'rich_text_section', elements });
    const textOf = (text: string) => ({ type: 'text', text });
    const elementsOf = ([name, value]: Fact) => [
      { type: 'text', text: `\n${name}: `, style: { bold: true } },
      name === LINK ? { type: 'link', url: value } : textOf(value),
    ];
    const lines = facts.map((of) => of.map((fact) => lineOf(fact)).join('\n'));
    return {
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
};

function lineOf([name, value]: Fact): string {
  return `${name}: ${name === LINK ? escapeSlack(value) : plainInMarkdown(value)}`;
}

/** Escapes the control characters of Slack's markup: https://docs.slack.dev/messaging/formatting-message-text */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

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
