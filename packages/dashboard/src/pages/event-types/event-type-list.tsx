import type { EventType } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { given } from '../../api/given.js';
import { Badge } from '../../components/data/badge.js';
import type { Column } from '../../components/data/log.js';
import { Time } from '../../components/data/time.js';
import { Button, ButtonLink } from '../../components/layout/button.js';
import { NewLink } from '../../components/form/new-link.js';
import { Page } from '../../components/layout/page.js';
import { param } from '../../router/location.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { FilterBar } from '../log/filter-bar.js';
import { LiveLog } from '../log/live-log.js';
import { ImportDialog } from './import-dialog.js';
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
      <FilterBar searchHint="Name or description" hasTime={false} />
      <LiveLog<EventType>
        key={round}
        label="Event types"
        name={`${projectId.value} event types`}
        columns={columns}
        load={(page, signal) =>
          api()
            .eventTypes.list({ ...page, ...given({ q: param('search') }) }, { signal })
            .page()
        }
        hrefOf={(type) => projectHref(pathOf(type))}
      >
        <p>Event types tell receivers what they get: description, schema and example.</p>
        {mayCreate && <p>Create them here, or import the webhooks of an OpenAPI document.</p>}
        {mayCreate && (
          <ButtonLink kind="main" href={projectHref('/event-types/new')}>
            Create the first event type
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

const columns: readonly Column<EventType>[] = [
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
    name: 'Documented by',
    width: '9rem',
    narrow: 'hidden',
    cell: (type) => <span class="muted">{documented(type)}</span>,
  },
  {
    name: 'Changed',
    width: '9rem',
    narrow: 'hidden',
    cell: ({ updated_at: at }) => <Time at={at} look="row" />,
  },
];

function documented({ json_schema: schema, example }: EventType): string {
  return (
    [schema !== null && 'schema', example !== null && 'example'].filter(Boolean).join(', ') ||
    'its name alone'
  );
}
