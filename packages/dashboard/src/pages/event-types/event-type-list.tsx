import type { EventType, ImportedEventTypes } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, given } from '../../api/index.js';
import {
  Badge,
  Button,
  DialogButton,
  Field,
  FormDialog,
  Link,
  ListPage,
  type LogColumn,
  Muted,
  TextArea,
  timeCell,
  useForm,
} from '../../components/index.js';
import { objectOf } from '../../format/json.js';
import { count } from '../../format/number.js';
import { isPortal, param, projectHref } from '../../router/location.js';
import { may } from '../../session/session.js';
import { pathOf } from './event-type-form.js';

export default function EventTypeList() {
  const mayCreate = may('member');
  return (
    <ListPage<EventType>
      title="Event types"
      actions={
        mayCreate && (
          <DialogButton dialog={(close) => <ImportDialog onClose={close} />}>Import…</DialogButton>
        )
      }
      creates={mayCreate && 'event type'}
      searchHint="Name or description"
      hasTime={false}
      note={
        isPortal.value && (
          <p class="muted">
            Each message has an event type, which says what happened and what its data holds. An
            endpoint receives the types that it subscribes to.
          </p>
        )
      }
      columns={columns}
      load={(page, options) =>
        api().eventTypes.list({ ...page, ...given({ q: param('search') }) }, options)
      }
      hrefOf={(type) => projectHref(pathOf(type))}
    >
      <p>
        {isPortal.value
          ? 'No event types are described yet. Endpoints that subscribe to * receive all messages.'
          : 'Event types document events for receivers, with a description, schema and example.'}
      </p>
      {mayCreate && <p>Create event types here, or import the webhooks of an OpenAPI document.</p>}
    </ListPage>
  );
}

const columns: readonly LogColumn<EventType>[] = [
  { name: 'Name', width: 'minmax(9rem, 1fr)', cell: ({ name }) => name },
  {
    name: 'State',
    width: '6.5rem',
    cell: ({ deprecated_at: at }) => (
      <Badge status={at ? 'deprecated' : 'current'} tone={at ? 'warn' : 'ok'} />
    ),
  },
  {
    name: 'Description',
    width: 'minmax(10rem, 2.5fr)',
    narrow: 'second',
    cell: ({ description }) => <Muted text={description} />,
  },
  {
    name: 'Documentation',
    width: '9rem',
    narrow: 'hidden',
    cell: (type) => <Muted text={documented(type)} />,
  },
  { name: 'Changed', ...timeCell('updated_at', 'row'), width: '9rem', narrow: 'hidden' },
];

function documented({ json_schema: schema, example }: EventType): string {
  return (
    [schema !== null && 'schema', example !== null && 'example'].filter(Boolean).join(', ') ||
    'none'
  );
}

const TONES = { created: 'ok', updated: 'warn', unchanged: 'plain' } as const;

function ImportDialog({ onClose }: { onClose: () => void }) {
  const [imported, setImported] = useState<ImportedEventTypes>();
  const form = useForm({ text: '' }, async () => {
    if (document.problem === undefined) setImported(await api().eventTypes.import(document.value));
  });
  const { text } = form.values;
  const document = objectOf(text);
  return (
    <FormDialog
      title={imported ? 'Import complete' : 'Import event types'}
      verb="Import"
      isReady={text.trim() !== '' && document.problem === undefined}
      action={form}
      onClose={onClose}
      done={imported && <Imported {...imported} />}
      doneActions={<Button onPress={onClose}>Close</Button>}
    >
      <p>
        The webhooks and callbacks of an OpenAPI 3 document become event types. Existing event types
        are updated, and none is removed. Either all changes are made, or none.
      </p>
      <Field label="File">
        {(wiring) => (
          <input
            {...wiring}
            type="file"
            accept=".json,application/json"
            onChange={({ currentTarget: { files } }) =>
              void files?.[0]?.text().then(form.set('text'))
            }
          />
        )}
      </Field>
      <TextArea
        label="OpenAPI document"
        isMono
        rows={10}
        hint="JSON. All references must resolve within the document."
        {...form.text('text')}
        error={document.problem}
      />
    </FormDialog>
  );
}

function Imported({ created, updated, unchanged, content }: ImportedEventTypes) {
  return (
    <>
      <p role="status">
        {content.length === 0
          ? 'The document has no webhooks or callbacks. Nothing was imported.'
          : `${count(created)} created, ${count(updated)} updated, ${count(unchanged)} unchanged.`}
      </p>
      <ul class="imported">
        {content.map(({ name, result }) => (
          <li key={name}>
            <Badge status={result} tone={TONES[result]} />{' '}
            <Link to={`/event-types/${encodeURIComponent(name)}`}>{name}</Link>
          </li>
        ))}
      </ul>
    </>
  );
}
