import { INVISIBLE, LINK, type Preset } from './message.js';

/** Teams documents 28 KB, and counts more than the bytes of the request. */
const CARD_MAX = 20_000;

/**
 * An Adaptive Card for the Workflows webhook:
 * https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook
 * A TextBlock and a Fact are Markdown, a TextRun is not.
 */
export const teams: Preset = {
  usage: (body) => Buffer.byteLength(JSON.stringify(body)) / CARD_MAX,
  request({ subject, opening, facts }) {
    const run = (text: string, style = {}) => ({ type: 'TextRun', ...style, text: undated(text) });
    const block = (...inlines: readonly unknown[]) => ({ type: 'RichTextBlock', inlines });
    const link = (to: string) => ({ selectAction: { type: 'Action.OpenUrl', url: to } });
    return {
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
};

/** Breaks the functions for dates and times: https://learn.microsoft.com/en-us/adaptive-cards/authoring-cards/text-features */
function undated(text: string): string {
  return text.replaceAll('{{', `{${INVISIBLE}{`);
}
