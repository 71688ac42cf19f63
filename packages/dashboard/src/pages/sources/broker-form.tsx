import { GatewayApiError, type Source, type SourcePlugin } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, ifMatch, useAction, useDraft } from '../../api/index.js';
import {
  Button,
  Checkbox,
  Form,
  type FormSchema,
  SchemaForm,
  submitted,
  TextArea,
  TextField,
  textsOf,
  toast,
  type Value,
} from '../../components/index.js';
import { navigate, projectPath } from '../../router/location.js';
import { may } from '../../session/session.js';

const TYPES = { pull: 'pub_sub', push: 'http' } as const;

/**
 * The form that creates or changes a source of a plugin other than `http`. Its connection fields are
 * generated from the plugin's schema.
 */
export function BrokerForm({
  type: { name: type, kind, connection },
  source,
  onCreated = open,
}: {
  type: SourcePlugin;
  source?: Source;
  onCreated?: (created: Source) => void;
}) {
  const schema = connection as FormSchema;
  const isRead = kind === 'pull';
  const pubSub = source?.pub_sub as { workers?: number; [connection: string]: unknown } | undefined;
  const stored = (pubSub?.[type] ?? {}) as Value;
  const before = (source?.forward_headers ?? []).join('\n');
  const [works, setWorks] = useState<string>();
  const draft = useDraft({
    name: source?.name ?? '',
    keepMessages: source?.keep_messages ?? false,
    workers: String(pubSub?.workers ?? 1),
    headers: before,
    value: stored,
  });
  const { name, keepMessages, workers, headers, value } = draft.values;
  const asked = () => ({
    type,
    ...(isRead && { workers: Number(workers) }),
    [type]: submitted(schema, value, stored),
  });
  const test = useAction(async () => {
    setWorks(undefined);
    save.clear();
    const { advice } = await api().sources.testConnection({
      pub_sub: asked(),
      ...(source ? { source_id: source.uid } : {}),
    });
    setWorks(advice ? `The connection works. ${advice}` : 'The connection works.');
  }, false);
  const save = useAction(async (skipCheck = false) => {
    setWorks(undefined);
    test.clear();
    const check = skipCheck ? { skip_check: true } : {};
    const forwards = headers === before ? {} : { forward_headers: linesOf(headers) };
    const body = { name, keep_messages: keepMessages, pub_sub: asked(), ...forwards };
    if (source) {
      await api().sources.update(source.uid, body, check, ifMatch(source));
      toast('Source saved.');
    } else {
      const created = await api().sources.create({ ...body, type: TYPES[kind] }, check);
      toast(isRead ? 'Source created. Agents start to read it.' : 'Source created. Copy its URL.');
      onCreated(created);
    }
  });
  const error = save.error ?? test.error;
  const text = textsOf(draft, error);
  const isRefused =
    save.error instanceof GatewayApiError && save.error.code === 'source_check_failed';
  return (
    <Form
      action={{ ...save, error }}
      verb={may('member') ? (source ? 'Save' : 'Create source') : undefined}
      marksRequired
      remedy={
        isRefused && (
          <Button onPress={() => save.run(true)}>
            {source ? 'Save without testing' : 'Create without testing'}
          </Button>
        )
      }
      actions={
        may('member') &&
        isRead && (
          <Button isRunning={test.isRunning} onPress={test.run}>
            Test connection
          </Button>
        )
      }
    >
      <TextField label="Name" {...text('name')} isRequired hasFocus={!source} />
      <SchemaForm
        schema={schema}
        value={value}
        onChange={draft.set('value')}
        stored={stored}
        error={error}
        path={`pub_sub.${type}`}
      />
      {isRead && (
        <>
          <TextField
            label="Workers"
            type="number"
            hint="Number of readers across all agents: consumer group members or queue pollers. Each agent runs at least one."
            {...text('workers', 'pub_sub.workers')}
          />
          <TextArea
            label="Forwarded headers"
            hint={
              source?.forward_headers === null
                ? 'One per line. Empty: all headers of this source travel, because it was made before they could be chosen.'
                : 'Headers of messages that travel with the event, one per line.'
            }
            rows={2}
            isMono
            {...text('headers', 'forward_headers')}
          />
        </>
      )}
      <KeepMessages isOn={keepMessages} onChange={draft.set('keepMessages')} />
      {works && (
        <p class="source-works" role="status">
          {works}
        </p>
      )}
    </Form>
  );
}

export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}

export function open({ uid }: Source): void {
  navigate(projectPath(`/sources/${uid}`));
}

export function KeepMessages({
  isOn,
  onChange,
}: {
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}) {
  return (
    <Checkbox
      label="Keep messages"
      hint="Stores the original message with each event, up to 64 KB, including data that the function omits."
      isOn={isOn}
      onChange={onChange}
    />
  );
}
