import type { WholeQuarantinedMessage } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Badge, Copyable, Facts, FullTime } from '../../components/data.js';
import { Loaded, Problem } from '../../components/feedback.js';
import { Checkbox, TextArea } from '../../components/field.js';
import { Button, ButtonLink, Page, Panel, Tabs, tabValue } from '../../components/layout.js';
import { bytes } from '../../format/number.js';
import { projectHref } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { BytesAs, FORMS, textOf, type Raw } from '../preview/bytes.js';
import { PreviewResult, usePreview } from '../preview/preview.js';
import { isOfFunction, reasonOf } from './reasons.js';
import { MessageActions, tell } from './replay.js';

export default function MessagePage({ params: { id = '' } }: PageProps) {
  const resource = useResource(`quarantined ${id}`, (signal) =>
    api().quarantine.get(id, { signal }),
  );
  const source = useResource(resource.data && `source ${resource.data.source_id}`, (signal) =>
    api().sources.get(resource.data?.source_id ?? '', { signal }),
  );
  const { data: message } = resource;
  return (
    <Page
      title={message ? reasonOf(message.code).label : 'Quarantined message'}
      above={<a href={projectHref('/quarantine')}>Quarantine</a>}
      actions={
        message?.status === 'quarantined' && <MessageActions id={id} onDone={resource.refresh} />
      }
    >
      <Loaded resource={resource} lines={12}>
        {(data) => (
          <div class="split">
            <div>
              <Panel title="Quarantine reason" actions={<Badge status={data.status} />}>
                <Why message={data} />
              </Panel>
              <MessageBytes key={data.updated_at} message={data} onChange={resource.refresh} />
            </div>
            <aside>
              <Panel title="Details">
                <MessageFacts message={data} sourceName={source.data?.name} />
              </Panel>
            </aside>
          </div>
        )}
      </Loaded>
    </Page>
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
        <ButtonLink href={projectHref(`/sources/${source}/function?message=${uid}`)}>
          Test the function with this message
        </ButtonLink>
      )}
      {status === 'replayed' && (
        <p>
          This message was replayed. <a href={projectHref(`/events/${uid}`)}>View event</a>
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
  const {
    uid,
    source_id: source,
    coordinates,
    occurred_at: at,
    created_at: quarantinedAt,
    edited_at: editedAt,
    headers,
    code,
  } = message;
  return (
    <Facts
      rows={[
        ['Source', <a href={projectHref(`/sources/${source}`)}>{sourceName ?? source}</a>],
        ['Coordinates', <Copyable text={coordinates} what="coordinates" />],
        ['Message time', <FullTime at={at} />],
        ['Quarantined', <FullTime at={quarantinedAt} />],
        ['Edited', editedAt && <FullTime at={editedAt} />],
        ['Size', bytes(message.raw_bytes)],
        ['Code', <code>{code}</code>],
        ['ID', <Copyable text={uid} what="ID" />],
        ...Object.entries(headers).map(
          ([name, value]) => [`Header ${name}`, <span class="mono">{value}</span>] as const,
        ),
      ]}
    />
  );
}

function MessageBytes({
  message,
  onChange,
}: {
  message: WholeQuarantinedMessage;
  onChange: () => void;
}) {
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
      {shown === 'edit' && <MessageEditor message={message} onChange={onChange} />}
    </Panel>
  );
}

/**
 * Edits a message, testing it while the user types with its source's function and the current
 * subscriptions. It can be replayed unless it would be quarantined again.
 */
function MessageEditor({
  message,
  onChange,
}: {
  message: WholeQuarantinedMessage;
  onChange: () => void;
}) {
  const before = textOf(message);
  const [text, setText] = useState(before);
  const preview = usePreview({ quarantine_id: message.uid, raw: text }, (test, options) =>
    api().sources.testFunction(test, options),
  );
  const isBinary = message.raw_encoding === 'base64';
  const save = useAction(async () => {
    if (text !== before || isBinary) {
      await api().quarantine.update(
        message.uid,
        { raw: text },
        { headers: { 'if-match': `"${message.updated_at}"` } },
      );
    }
    tell(await api().quarantine.replay(message.uid));
    onChange();
  });
  const isGood =
    preview.isCurrent && preview.result !== undefined && preview.result.outcome !== 'quarantined';
  return (
    <div class="message-editor">
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
            <Button onPress={onChange}>Reload message</Button>
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
