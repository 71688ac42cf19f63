import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import {
  discardQuarantinedMessage,
  editQuarantinedMessage,
  findQuarantinedMessage,
  listQuarantinedMessages,
  quarantinedBytes,
  type QuarantinedMessageRow,
  type QuarantinedMessageWhole,
} from '@gateway/store/quarantine';
import { refuse } from '../http/mount.js';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import { RawJson } from '../http/raw-json.js';
import { projectRoute, type ProjectCall, type Route } from '../http/route.js';
import { closed, Id, oneOf, Word } from '../http/schema.js';
import { span, spanQuery } from '../http/time-span.js';

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

const Edit = Type.Object(
  {
    raw: Type.String({ description: 'The new bytes.' }),
    raw_encoding: Type.Optional(oneOf(['utf8', 'base64'], { default: 'utf8' })),
  },
  closed,
);

function wholeView({ raw, edited_raw, ...row }: QuarantinedMessageWhole): unknown {
  return { ...view(row), ...quarantinedBytes({ raw, edited_raw }) };
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
    {
      method: 'put',
      path: '/quarantine/:id',
      summary: 'Stores bytes for a quarantined message to be replayed with; those that came are kept.',
      body: Edit,
    },
    async (call) => {
      const { raw, raw_encoding: encoding = 'utf8' } = call.body;
      const bytes = Buffer.from(raw, encoding);
      if (encoding === 'base64' && bytes.toString('base64') !== raw) refuse([{ field: 'raw', sentence: 'is not base64' }]);
      const { id, status, edited_at: editedAt } = await find(call);
      const seen = { projectId: call.project.id, id, editedAt };
      if (!(await editQuarantinedMessage(call.parts.database.pool, seen, bytes))) {
        throw new GatewayError('conflict', {
          sentence: status === 'quarantined' ? 'somebody changed the message meanwhile' : `the message is ${status} already`,
        });
      }
      return { message: 'quarantined message edited', data: wholeView(await find(call)) };
    },
  ),
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
