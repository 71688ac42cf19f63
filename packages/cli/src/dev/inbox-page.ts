import { headerLines, type Receipt } from './receipt.js';

const STYLE = `
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  article { border-top: 1px solid #8886; padding: 1rem 0 }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; font-size: 13px }
  .right { color: #1a7f37 } .wrong { color: #d1242f }`;

/** What the inbox got, the newest first, for a browser; it looks again every three seconds. */
export function inboxPage(receipts: readonly Receipt[]): string {
  const none = '<p>Nothing yet.</p>';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>Inbox</title><style>${STYLE}</style></head>
<body><h1>Inbox</h1>${receipts.map(article).join('\n') || none}</body></html>
`;
}

function article(receipt: Receipt): string {
  const { receivedAt, requestLine, body, problem } = receipt;
  const request = [requestLine, ...headerLines(receipt)].join('\n');
  const verdict =
    problem === undefined
      ? '<strong class="right">signature verified</strong>'
      : `<strong class="wrong">not verified: ${escape(problem)}</strong>`;
  return `<article><p>${new Date(receivedAt).toISOString()} ${verdict}</p><pre>${escape(request)}</pre><pre>${escape(body)}</pre></article>`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
