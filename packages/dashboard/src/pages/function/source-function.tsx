import type { Event, FunctionTest, QuarantinedMessage, Source } from '@gateway/client';
import { useEffect, useState } from 'preact/hooks';
import { api, type ReadOptions, useResource } from '../../api/index.js';
import { Link, Problem, ResourcePage, Select, TextArea } from '../../components/index.js';
import { param, query, setQuery } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { textOf } from '../preview/bytes.js';
import { PreviewResult, usePreview } from '../preview/preview.js';
import { reasonOf } from '../quarantine/reasons.js';
import { SourceTabs } from '../sources/source-state.js';
import { FunctionEditor, type FunctionPlace, useFunctionDraft } from './function-editor.js';

const EXAMPLE = `function transform(payload) {
  return {
    event_type: 'order.' + payload.status,
    data: payload,
  };
}
`;

const place: FunctionPlace<Source> = {
  textOf: (source) => source.body_function,
  read: (uid) => api().sources.get(uid),
  write: (uid, text, options) => api().sources.update(uid, { body_function: text }, {}, options),
  saved: 'Function saved. Agents use it for the next message.',
};

export default function SourceFunction({ id }: PageProps) {
  const source = useResource(`source ${id}`, (options) => api().sources.get(id, options));
  return (
    <ResourcePage
      resource={source}
      title={({ name }) => name}
      name="Source"
      list="Sources"
      tabs={<SourceTabs id={id} shown="function" />}
    >
      {(data) => <Editor source={data} />}
    </ResourcePage>
  );
}

function Editor({ source }: { source: Source }) {
  const draft = useFunctionDraft(source, place);
  const sample = useSample(source);
  const test =
    may('member') && sample.message ? { function: draft.text, ...sample.message } : undefined;
  const preview = usePreview(test, (it, options) => api().sources.testFunction(it, options));
  return (
    <FunctionEditor
      draft={draft}
      preview={preview}
      example={EXAMPLE}
      about={
        <>
          The function receives each message and returns <code>event_type</code> and{' '}
          <code>data</code>, an array of such objects, or null to drop the message. Without a
          function, messages must already have this form.
        </>
      }
    >
      <Select
        label="Message"
        value={sample.chosen}
        options={sample.options}
        onChange={sample.choose}
        hint={sample.hint}
      />
      {sample.error && <Problem error={sample.error} />}
      <TextArea
        label="Message body"
        rows={8}
        isMono
        value={sample.text}
        onChange={sample.setText}
      />
      <PreviewResult preview={preview} />
      {sample.quarantineId && (
        <Link to={`/quarantine/${sample.quarantineId}`}>Open and replay the message</Link>
      )}
    </FunctionEditor>
  );
}

const OFFERED = 10;
const OWN = '{\n  "id": "A-1001",\n  "status": "paid"\n}';

/**
 * A quarantined message or an event, set by the query parameters `message` and `event`, or the
 * user's own text. The text can be edited.
 */
function useSample(source: Source) {
  const quarantineId = param('message');
  const eventId = param('event');
  const chosen = quarantineId ? `message ${quarantineId}` : eventId ? `event ${eventId}` : '';
  const [typed, setTyped] = useState<{ of: string; text: string }>({ of: '', text: OWN });

  const offered = useResource(`samples ${source.uid}`, async (options) => {
    const filter = { sourceId: source.uid, perPage: OFFERED };
    const [quarantined, events] = await Promise.all([
      api()
        .quarantine.list({ ...filter, status: 'quarantined' }, options)
        .page(),
      api().events.list(filter, options).page(),
    ]);
    return { quarantined: quarantined.content, events: events.content };
  });
  const read = useResource(chosen ? `sample ${chosen}` : undefined, (options) =>
    quarantineId ? quarantined(quarantineId, options) : ofEvent(eventId, source, options),
  );
  const readText = read.data?.text;
  const choose = (value: string) => {
    const [kind, id] = value.split(' ');
    if (value === '') setTyped({ of: '', text: typed.text || OWN });
    setQuery(
      { message: kind === 'message' ? id : undefined, event: kind === 'event' ? id : undefined },
      { replace: true },
    );
  };
  // Begins with a message that needs a function, otherwise the newest event.
  const [first] = offered.data ? optionsOf(offered.data, '').slice(1) : [];
  useEffect(() => {
    if (first && query.peek().size === 0) choose(first[0]);
  }, [first?.[0]]);
  useEffect(() => {
    if (chosen && readText !== undefined)
      setTyped((it) => (it.of === chosen ? it : { of: chosen, text: readText }));
  }, [chosen, readText]);

  const isReady = typed.of === chosen;
  const isChanged = typed.text !== readText;
  return {
    text: isReady ? typed.text : '',
    setText: (text: string) => setTyped({ of: chosen, text }),
    options: optionsOf(offered.data, chosen),
    chosen,
    choose,
    /** For the test request. Undefined while loading. */
    message: isReady
      ? { ...read.data?.stored, ...((!read.data?.stored || isChanged) && { raw: typed.text }) }
      : undefined,
    quarantineId,
    error: read.error ?? offered.error,
    hint:
      eventId && source.body_function && read.data && !read.data.stored
        ? 'The original message was not kept. This is the event data that the function returned. To keep messages, change the settings of the source.'
        : undefined,
  };
}

interface Offered {
  readonly quarantined: readonly QuarantinedMessage[];
  readonly events: readonly Event[];
}

function optionsOf(offered: Offered | undefined, chosen: string): (readonly [string, string])[] {
  const { quarantined = [], events = [] } = offered ?? {};
  const known = [
    ...quarantined.map(
      ({ uid, code, coordinates }) =>
        [`message ${uid}`, `Quarantined: ${reasonOf(code).label}, ${coordinates}`] as const,
    ),
    ...events.map(
      ({ uid, event_type: type, coordinates }) =>
        [`event ${uid}`, `Event: ${type}, ${coordinates}`] as const,
    ),
  ];
  const other =
    chosen && !known.some(([value]) => value === chosen)
      ? [[chosen, 'Linked message'] as const]
      : [];
  return [['', 'Custom'], ...other, ...known];
}

interface Read {
  readonly text: string;
  readonly stored: Pick<FunctionTest, 'quarantine_id' | 'event_id'> | undefined;
}

async function quarantined(id: string, options: ReadOptions): Promise<Read> {
  return {
    text: textOf(await api().quarantine.get(id, options)),
    stored: { quarantine_id: id },
  };
}

async function ofEvent(id: string, source: Source, options: ReadOptions): Promise<Read> {
  const { event } = await api().events.explain(id, {}, options);
  const { raw, raw_encoding } =
    event.message_bytes === null ? { raw: null } : await api().events.getMessage(id, options);
  if (raw !== null) return { text: textOf({ raw, raw_encoding }), stored: { event_id: id } };
  return { text: messageOf(await api().events.get(id, options), source), stored: undefined };
}

/** Rebuilt from the event's data. Exact only for a source without a function. */
function messageOf({ event_type: type, data, headers }: Event, source: Source): string {
  if (source.body_function) return JSON.stringify(data, null, 2);
  const custom = Object.keys(headers).length > 0 ? { custom_headers: headers } : {};
  return JSON.stringify({ event_type: type, data, ...custom }, null, 2);
}
