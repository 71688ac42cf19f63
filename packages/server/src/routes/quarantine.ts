import { GatewayError } from '@gateway/core/errors';
import { messageOfRow } from '@gateway/store/events';
import {
  discardQuarantinedMessages,
  editQuarantinedMessage,
  findQuarantinedMessage,
  listQuarantinedMessages,
  quarantinedBytes,
  type QuarantinedMessageRow,
  type QuarantinedMessageWhole,
} from '@gateway/store/quarantine';
import {
  found,
  Id,
  int,
  invalid,
  listRoute,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  pageQuery,
  projectItem,
  RawJson,
  string,
  timeQuery,
  timeRange,
  Timestamp,
  Type,
  withUid,
  Word,
  type ProjectCall,
  type Route,
} from '../api/vocabulary.js';
import { MessageOfEvent } from './events/message-of-event.js';

const Status = oneOf(['quarantined', 'replayed', 'discarded']);
const ListQuery = object({
  ...pageQuery,
  ...timeQuery,
  ...optional({ sourceId: Id, status: Status, code: Word }),
});

const Encoding = oneOf(['utf8', 'base64']);
const Edit = namedObject('QuarantineEdit', {
  raw: string('The new content.'),
  raw_encoding: Type.Optional(oneOf(['utf8', 'base64'], { default: 'utf8' })),
});

const row = {
  uid: Id,
  project_id: Id,
  source_id: Id,
  occurred_at: Timestamp,
  created_at: Timestamp,
  updated_at: Timestamp,
  status: Status,
  coordinates: string(
    'Position in the source: topic, partition and offset, or the message id of the queue.',
  ),
  code: string(),
  reason: string(),
  headers: Type.Record(string(), string()),
  message: MessageOfEvent,
  edited_at: nullable(Timestamp),
  raw_bytes: int('Size of the content that a replay uses.'),
};
const QuarantinedMessage = namedObject('QuarantinedMessage', row);
const WholeMessage = namedObject('WholeQuarantinedMessage', {
  ...row,
  raw: string('The content that a replay uses.'),
  raw_encoding: Encoding,
  ...optional({
    original_raw: string('The original content, if it was edited.'),
    original_raw_encoding: Encoding,
  }),
});
const shown = { thing: 'quarantined message', data: WholeMessage } as const;

function view({ headers, ...row }: QuarantinedMessageRow): object {
  return { ...withUid(row), headers: new RawJson(headers), message: messageOfRow(row) };
}

function wholeView({ raw, edited_raw, ...row }: QuarantinedMessageWhole): unknown {
  return { ...view(row), ...quarantinedBytes({ raw, edited_raw }) };
}

export const quarantineRoutes: readonly Route[] = [
  listRoute(
    '/quarantine',
    'Lists quarantined messages by their time.',
    { query: ListQuery, title: 'quarantined messages', data: QuarantinedMessage },
    ({ read, project, query }, page) => {
      const filter = { ...query, ...timeRange(query) };
      return read((planes) => listQuarantinedMessages(planes, project.id, filter, page));
    },
    view,
  ),
  projectItem(
    'GET /quarantine/:id',
    'Shows a quarantined message with its content.',
    shown,
    (call) => requireQuarantined(call, call.id),
    wholeView,
  ),
  projectItem(
    'PUT /quarantine/:id',
    'Edits the content that a replay of a quarantined message uses. The original is kept.',
    { ...shown, message: 'quarantined message edited', body: Edit, carriesMessage: true },
    async (call) => {
      const { raw, raw_encoding: encoding = 'utf8' } = call.body;
      const bytes = Buffer.from(raw, encoding);
      if (encoding === 'base64' && bytes.toString('base64') !== raw)
        throw invalid('raw', 'is not base64');
      const { id, status, edited_at: editedAt } = await requireQuarantined(call, call.id);
      const seen = { projectId: call.project.id, id, editedAt };
      if (await editQuarantinedMessage(call.planes.data, seen, bytes))
        return requireQuarantined(call, call.id);
      throw new GatewayError('conflict', {
        sentence:
          status === 'quarantined'
            ? 'the message was changed concurrently'
            : `the message is already ${status}`,
      });
    },
    wholeView,
  ),
  projectItem(
    'PUT /quarantine/:id/discard',
    'Discards a quarantined message.',
    { ...shown, message: 'quarantined message discarded' },
    async (call) => {
      const row = await requireQuarantined(call, call.id);
      const refs = [{ projectId: call.project.id, id: row.id }];
      const [discarded] = await discardQuarantinedMessages(call.planes.data, refs);
      if (discarded) return requireQuarantined(call, call.id);
      throw new GatewayError('conflict', { sentence: `the message is already ${row.status}` });
    },
    wholeView,
  ),
];

/** Throws `not_found`. */
export async function requireQuarantined(
  { planes, project }: Pick<ProjectCall, 'planes' | 'project'>,
  id: string,
): Promise<QuarantinedMessageWhole> {
  const message = await findQuarantinedMessage(planes.data, project.id, id);
  return found(message, 'quarantined message', id);
}
