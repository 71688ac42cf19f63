import { GatewayApiError, type ChangedEventType, type EventType } from '@gateway/client';
import { changed, useDraft, useEdit } from '../../api/change.js';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Conflict } from '../../components/conflict.js';
import { Badge, Code, Time } from '../../components/data.js';
import { Empty, Loaded, toast } from '../../components/feedback.js';
import { ActionButton } from '../../components/form.js';
import { Button, ButtonLink, Page, Panel } from '../../components/layout.js';
import { isPortal, projectHref, query, setQuery } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may, mayManage } from '../../session/session.js';
import { eventCommand } from './event-command.js';
import { draftOf, EventTypeForm, fieldsOf } from './event-type-form.js';
import { SchemaTable } from './schema-table.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The name takes precedence over the id, because it may look like one. */
async function find(name: string, signal: AbortSignal): Promise<EventType | null> {
  const { content } = await api().eventTypes.list({ name }, { signal }).page();
  if (content[0] || !UUID.test(name)) return content[0] ?? null;
  try {
    return await api().eventTypes.get(name, { signal });
  } catch (error) {
    if (error instanceof GatewayApiError && error.status === 404) return null;
    throw error;
  }
}

export default function EventTypePage({ params: { name = '' } }: PageProps) {
  const resource = useResource(`event type ${name}`, (signal) => find(name, signal));
  const { data, refresh } = resource;
  const isEditing = query.value.has('edit') && may('member');
  return (
    <Page
      title={data?.name ?? name}
      above={<a href={projectHref('/event-types')}>Event types</a>}
      actions={data && !isEditing && <Actions type={data} onChange={refresh} />}
    >
      <Loaded resource={resource} lines={12}>
        {(type) => {
          if (type === null) return <Unknown name={name} />;
          return isEditing ? (
            <EventTypeEdit type={type} onSaved={refresh} />
          ) : (
            <Reference type={type} />
          );
        }}
      </Loaded>
    </Page>
  );
}

function Unknown({ name }: { name: string }) {
  return (
    <Empty title={`There is no event type ${name}`}>
      <p>
        {isPortal.value
          ? 'The event type may have been renamed or deleted.'
          : 'Events can still have this type, unless the project rejects unknown event types.'}
      </p>
      {!isPortal.value && (
        <ButtonLink href={projectHref(`/events?search=${encodeURIComponent(name)}`)}>
          Search events
        </ButtonLink>
      )}
    </Empty>
  );
}

function Actions({
  type: { uid, name, deprecated_at: deprecatedAt },
  onChange,
}: {
  type: EventType;
  onChange: () => void;
}) {
  const isDeprecated = deprecatedAt !== null;
  const begin = () => setQuery({ edit: '1' });
  return (
    <>
      {!isPortal.value && (
        <ButtonLink href={projectHref(`/events?search=${encodeURIComponent(name)}`)}>
          View events
        </ButtonLink>
      )}
      {mayManage() && (
        <ButtonLink href={projectHref(`/subscriptions/new?types=${encodeURIComponent(name)}`)}>
          Subscribe
        </ButtonLink>
      )}
      {may('member') && (
        <>
          <ActionButton
            work={async () => {
              await api().eventTypes.update(uid, { deprecated: !isDeprecated });
              toast(
                isDeprecated
                  ? `${name} is current again.`
                  : `${name} is deprecated. Its events are still delivered.`,
              );
              onChange();
            }}
          >
            {isDeprecated ? 'Make current' : 'Deprecate'}
          </ActionButton>
          <Button keys="e" onPress={begin}>
            Edit
          </Button>
        </>
      )}
    </>
  );
}

function EventTypeEdit({ type, onSaved }: { type: EventType; onSaved: () => void }) {
  const draft = useDraft(draftOf(type));
  const end = () => setQuery({ edit: undefined }, { replace: true });
  const edit = useEdit<EventType, ChangedEventType>(type, {
    write: (changes, options) => api().eventTypes.update(type.uid, changes, options),
    read: () => api().eventTypes.get(type.uid),
    onSaved: () => {
      end();
      onSaved();
      toast('Saved.');
    },
  });
  const [before, after] = [fieldsOf(draftOf(edit.base)), fieldsOf(draft.values)];
  return (
    <EventTypeForm
      draft={draft}
      action={{ ...edit, run: () => before && after && edit.save(changed(before, after)) }}
      verb="Save"
      isReady={after !== undefined}
      actions={<Button onPress={end}>Cancel</Button>}
    >
      <Conflict
        what="event type"
        edit={edit}
        onTheirs={(theirs) => draft.replace(draftOf(theirs))}
      />
    </EventTypeForm>
  );
}

function Reference({ type }: { type: EventType }) {
  const { name, description, json_schema: schema, example, deprecated_at: deprecatedAt } = type;
  return (
    <>
      {deprecatedAt && (
        <p>
          <Badge status="deprecated" tone="warn" /> since <Time at={deprecatedAt} />. Events are
          still delivered, but receivers should no longer rely on this type.
        </p>
      )}
      <p class="event-type-description">
        {description || <span class="muted">No description.</span>}
      </p>
      <Panel title="Data">
        {schema === null ? (
          <p class="muted">No schema.</p>
        ) : (
          <>
            <SchemaTable schema={schema} />
            <details class="more-fields">
              <summary>JSON Schema</summary>
              <Code label="JSON Schema" text={JSON.stringify(schema)} />
            </details>
          </>
        )}
      </Panel>
      <Panel title="Example">
        {example === null ? (
          <p class="muted">No example. Test events send a greeting.</p>
        ) : (
          <Code label="Data" text={JSON.stringify(example)} />
        )}
        {!isPortal.value && (
          <>
            <p>
              Send an event, with an API key in <code>GATEWAY_KEY</code>:
            </p>
            <Code isRaw label="Command" text={eventCommand(name, example)} />
          </>
        )}
      </Panel>
    </>
  );
}
