import { isUtf8 } from 'node:buffer';
import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core';
import { discardQuarantinedMessage, findQuarantinedMessage, listQuarantinedMessages, type QuarantinedMessageRow } from '@gateway/store';
import { pageQuery, pageRequest, pageView } from '../pagination.js';
import { RawJson } from '../raw-json.js';
import { projectRoute, type ProjectCall, type Route } from '../route.js';
import { closed, Id, oneOf, Word } from '../schema.js';
import { span, spanQuery } from '../span.js';

const QuarantineQuery = Type.Object(
  {
    ...pageQuery,
    ...spanQuery,
    sourceId: Type.Optional(Id),
    status: Type.Optional(oneOf(['quarantined', 'replayed', 'discarded'])),
    code: Type.Optional(Word),
  },
  closed,
);

function view({ id, headers, ...row }: QuarantinedMessageRow): object {
  return { uid: id, ...row, headers: new RawJson(headers) };
}

/** The bytes as text, or in base64 when they are no text. */
function wholeView({ raw, ...row }: QuarantinedMessageRow & { readonly raw: Buffer }): unknown {
  const encoding = isUtf8(raw) ? 'utf8' : 'base64';
  return { ...view(row), raw: raw.toString(encoding), raw_encoding: encoding };
}

export const quarantineRoutes: readonly Route[] = [
  projectRoute(
    { method: 'get', path: '/quarantine', summary: 'Lists messages that could not be accepted, by their time.', query: QuarantineQuery },
    async (call) => {
      const { parts, project, query } = call;
      const request = pageRequest(query);
      const page = await listQuarantinedMessages(parts.database.pool, project.id, { ...query, ...span(query) }, request);
      return { message: 'quarantined messages', data: pageView(page, request, view) };
    },
  ),
  projectRoute({ method: 'get', path: '/quarantine/:id', summary: 'Shows a quarantined message with its bytes.' }, async (call) => ({
    message: 'quarantined message',
    data: wholeView(await find(call)),
  })),
  projectRoute(
    { method: 'put', path: '/quarantine/:id/discard', summary: 'Marks a quarantined message as not worth keeping.' },
    async (call) => {
      const { id, status } = await find(call);
      if (!(await discardQuarantinedMessage(call.parts.database.pool, call.project.id, id))) {
        throw new GatewayError('conflict', { sentence: `the message is ${status} already` });
      }
      return { message: 'quarantined message discarded', data: wholeView(await find(call)) };
    },
  ),
];

async function find({ parts, project, params }: ProjectCall) {
  const { id = '' } = params;
  const row = await findQuarantinedMessage(parts.database.pool, project.id, id);
  if (!row) throw new GatewayError('not_found', { thing: 'quarantined message', id });
  return row;
}
