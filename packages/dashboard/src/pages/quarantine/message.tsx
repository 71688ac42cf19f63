import { bytes } from '../../format/number.js';
import type { WholeQuarantinedMessage } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, changes, ifMatch, useAction, useResource } from '../../api/index.js';
import {
  Badge,
  Button,
  ButtonLink,
  Checkbox,
  Copyable,
  Facts,
  FullTime,
  Link,
  Panel,
  Problem,
  ResourcePage,
  Tabs,
  tabValue,
  TextArea,
} from '../../components/index.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { FORMS, BytesAs, type Raw, textOf } from '../preview/bytes.js';
import { PreviewResult, usePreview } from '../preview/preview.js';
import { isOfFunction, reasonOf } from './reasons.js';
import { MessageActions, tell } from './replay.js';

export default function MessagePage({ id }: PageProps) {
  const resource = useResource(`quarantined ${id}`, (options) => api().quarantine.get(id, options));
  const source = useResource(resource.data && `source ${resource.data.source_id}`, (options) =>
    api().sources.get(resource.data?.source_id ?? '', options),
  );
  return (
    <ResourcePage
      resource={resource}
      title={({ code }) => reasonOf(code).label}
      name="Quarantined message"
      list="Quarantine"
      actions={({ status }) => status === 'quarantined' && <MessageActions id={id} />}
    >
      {(message) => (
        <div class="split">
          <div>
            <Panel title="Quarantine reason" actions={<Badge status={message.status} />}>
              <Why message={message} />
            </Panel>
            <MessageBytes key={message.updated_at} message={message} />
          </div>
          <aside>
            <Panel title="Details">
              <MessageFacts message={message} sourceName={source.data?.name} />
            </Panel>
          </aside>
        </div>
      )}
    </ResourcePage>
  );
}

function Why({
  message: { uid, status, code, reason, source_id: source },
}: {
  message: WholeQuarantinedMessage;
}) {
  return (
    <div class="quarantine-why">
      <p>
        <strong>{reason}</strong>
      </p>
      {status === 'quarantined' && <p>{reasonOf(code).fix}</p>}
      {status === 'quarantined' && isOfFunction(code) && (
        <ButtonLink to={`/sources/${source}/function?message=${uid}`}>
          Test the function with this message
        </ButtonLink>
      )}
      {status === 'replayed' && (
        <p>
          This message was replayed. <Link to={`/events/${uid}`}>View event</Link>
        </p>
      )}
      {status === 'discarded' && (
        <p>This message was discarded. It is deleted when its retention period ends.</p>
      )}
    </div>
  );
}

function MessageFacts({
  message,
  sourceName,
}: {
  message: WholeQuarantinedMessage;
  sourceName: string | undefined;
}) {
  const { source_id: source, edited_at: editedAt } = message;
  const headers = Object.entries(message.headers).map(
    ([name, value]) => [`Header ${name}`, <span class="mono">{value}</span>] as const,
  );
  return (
    <Facts
      rows={{
        Source: <Link to={`/sources/${source}`}>{sourceName ?? source}</Link>,
        Coordinates: <Copyable text={message.coordinates} what="coordinates" />,
        'Message time': <FullTime at={message.occurred_at} />,
        Quarantined: <FullTime at={message.created_at} />,
        Edited: editedAt && <FullTime at={editedAt} />,
        Size: bytes(message.raw_bytes),
        Code: <code>{message.code}</code>,
        ID: <Copyable text={message.uid} what="ID" />,
        ...Object.fromEntries(headers),
      }}
    />
  );
}

function MessageBytes({ message }: { message: WholeQuarantinedMessage }) {
  const [isOriginal, setOriginal] = useState(false);
  const canEdit = message.status === 'quarantined' && may('member');
  const tabs = [...FORMS, ...(canEdit ? ([['edit', 'Edit and replay']] as const) : [])];
  const shown = tabValue('bytes', tabs);
  const { original_raw: original, original_raw_encoding: encoding = 'utf8' } = message;
  const raw: Raw =
    isOriginal && original !== undefined ? { raw: original, raw_encoding: encoding } : message;
  return (
    <Panel title={`Message, ${bytes(message.raw_bytes)}`}>
      <Tabs name="bytes" label="Message format" tabs={tabs} />
      {original !== undefined && shown !== 'edit' && (
        <Checkbox label="Show the original" isOn={isOriginal} onChange={setOriginal} />
      )}
      <BytesAs form={shown} raw={raw} />
      {shown === 'edit' && <MessageEditor message={message} />}
    </Panel>
  );
}

function MessageEditor({ message }: { message: WholeQuarantinedMessage }) {
  const before = textOf(message);
  const [text, setText] = useState(before);
  const preview = usePreview({ quarantine_id: message.uid, raw: text }, (test, options) =>
    api().sources.testFunction(test, options),
  );
  const isBinary = message.raw_encoding === 'base64';
  const save = useAction(async () => {
    if (text !== before || isBinary) {
      await api().quarantine.update(message.uid, { raw: text }, ifMatch(message));
    }
    tell(await api().quarantine.replay(message.uid));
  });
  const isGood =
    preview.isCurrent && preview.result !== undefined && preview.result.outcome !== 'quarantined';
  return (
    <div class="columns">
      <div class="form">
        <TextArea
          label="Message body"
          hint={
            isBinary
              ? 'The message is not UTF-8, so unreadable bytes appear as �. Your text replaces the message. The original is kept.'
              : 'The original is kept.'
          }
          rows={Math.min(Math.max(text.split('\n').length + 1, 8), 20)}
          isMono
          value={text}
          onChange={setText}
        />
        {save.error && (
          <Problem error={save.error}>
            <Button onPress={() => changes.value++}>Reload message</Button>
          </Problem>
        )}
        <div class="form-actions">
          <Button kind="main" isDisabled={!isGood} isRunning={save.isRunning} onPress={save.run}>
            {text === before ? 'Replay' : 'Save and replay'}
          </Button>
          {text !== before && <Button onPress={() => setText(before)}>Undo changes</Button>}
        </div>
      </div>
      <PreviewResult preview={preview} />
    </div>
  );
}
