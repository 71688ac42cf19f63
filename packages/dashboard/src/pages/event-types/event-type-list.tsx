import type { EventType, ImportedEventTypes } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { api, given } from '../../api/client.js';
import { Badge, timeColumn } from '../../components/data.js';
import { Field, TextArea } from '../../components/field.js';
import { Dialog, FormDialog } from '../../components/form.js';
import { Button, ButtonLink, NewLink, Page } from '../../components/layout.js';
import { FilterBar } from '../../components/log/filter-bar.js';
import { LiveLog } from '../../components/log/live-log.js';
import type { LogColumn } from '../../components/log/log.js';
import { objectOf } from '../../format/json.js';
import { count } from '../../format/number.js';
import { isPortal, param, projectHref } from '../../router/location.js';
import { may } from '../../session/session.js';
import { pathOf } from './path.js';

export default function EventTypeList() {
  const mayCreate = may('member');
  const [round, setRound] = useState(0);
  const [isImporting, setImporting] = useState(false);
  return (
    <Page
      title="Event types"
      isFull
      actions={
        mayCreate && (
          <>
            <Button onPress={() => setImporting(true)}>Import…</Button>
            <NewLink what="event type" path="/event-types/new" />
          </>
        )
      }
    >
      {isPortal.value && (
        <p class="muted">
          Each message has an event type, which says what happened and what its data holds. An
          endpoint receives the types that it subscribes to.
        </p>
      )}
      <FilterBar searchHint="Name or description" hasTime={false} />
      <LiveLog<EventType>
        key={round}
        label="Event types"
        name="event types"
        columns={columns}
        load={(page, signal) =>
          api()
            .eventTypes.list({ ...page, ...given({ q: param('search') }) }, { signal })
            .page()
        }
        hrefOf={(type) => projectHref(pathOf(type))}
      >
        <p>
          {isPortal.value
            ? 'No event types are described yet. Endpoints that subscribe to * receive all messages.'
            : 'Event types document events for receivers, with a description, schema and example.'}
        </p>
        {mayCreate && (
          <p>Create event types here, or import the webhooks of an OpenAPI document.</p>
        )}
        {mayCreate && (
          <ButtonLink kind="main" href={projectHref('/event-types/new')}>
            Create event type
          </ButtonLink>
        )}
      </LiveLog>
      {isImporting && (
        <ImportDialog
          onClose={() => {
            setImporting(false);
            setRound(round + 1);
          }}
        />
      )}
    </Page>
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
    cell: ({ description }) => <span class="muted">{description}</span>,
  },
  {
    name: 'Documentation',
    width: '9rem',
    narrow: 'hidden',
    cell: (type) => <span class="muted">{documented(type)}</span>,
  },
  { ...timeColumn('Changed', 'updated_at', 'row'), width: '9rem', narrow: 'hidden' },
];

function documented({ json_schema: schema, example }: EventType): string {
  return (
    [schema !== null && 'schema', example !== null && 'example'].filter(Boolean).join(', ') ||
    'none'
  );
}

const TONES = { created: 'ok', updated: 'warn', unchanged: 'plain' } as const;

/** Creates and updates event types from the webhooks of an OpenAPI document. */
function ImportDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [imported, setImported] = useState<ImportedEventTypes>();
  const document = objectOf(text);
  const importing = useAction(async () => {
    if (document.problem === undefined) setImported(await api().eventTypes.import(document.value));
  });
  if (imported) {
    const { created, updated, unchanged, content } = imported;
    return (
      <Dialog
        title="Import complete"
        onClose={onClose}
        actions={<Button onPress={onClose}>Close</Button>}
      >
        <p role="status">
          {content.length === 0
            ? 'The document has no webhooks or callbacks. Nothing was imported.'
            : `${count(created)} created, ${count(updated)} updated, ${count(unchanged)} unchanged.`}
        </p>
        <ul class="imported">
          {content.map(({ name, result }) => (
            <li key={name}>
              <Badge status={result} tone={TONES[result]} />{' '}
              <a href={projectHref(`/event-types/${encodeURIComponent(name)}`)}>{name}</a>
            </li>
          ))}
        </ul>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="Import event types"
      verb="Import"
      isReady={text.trim() !== '' && document.problem === undefined}
      action={importing}
      onClose={onClose}
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
            onChange={({ currentTarget: { files } }) => void files?.[0]?.text().then(setText)}
          />
        )}
      </Field>
      <TextArea
        label="OpenAPI document"
        isMono
        rows={10}
        hint="JSON. All references must resolve within the document."
        value={text}
        onChange={setText}
        error={document.problem}
      />
    </FormDialog>
  );
}
