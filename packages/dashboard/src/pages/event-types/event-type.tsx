import { type ChangedEventType, type EventType, GatewayApiError } from '@gateway/client';
import { api, type ReadOptions, useResource } from '../../api/index.js';
import {
  ActionButton,
  Badge,
  Button,
  ButtonLink,
  Code,
  Empty,
  Panel,
  ResourcePage,
  Time,
  toast,
  useEdit,
} from '../../components/index.js';
import { isPortal, query, setQuery } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may, mayManage } from '../../session/session.js';
import { eventCommand } from './event-command.js';
import { draftOf, EventTypeForm, fieldsOf, type EventTypeDraft } from './event-type-form.js';
import { SchemaTable } from './schema-table.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The name takes precedence over the id, because it may look like one. */
async function find(name: string, options: ReadOptions): Promise<EventType | null> {
  const { content } = await api().eventTypes.list({ name }, options).page();
  if (content[0] || !UUID.test(name)) return content[0] ?? null;
  try {
    return await api().eventTypes.get(name, options);
  } catch (error) {
    if (error instanceof GatewayApiError && error.status === 404) return null;
    throw error;
  }
}

export default function EventTypePage({ id: name }: PageProps) {
  const resource = useResource(`event type ${name}`, (options) => find(name, options));
  const isEditing = query.value.has('edit') && may('member');
  return (
    <ResourcePage
      resource={resource}
      title={(type) => type?.name ?? name}
      name={name}
      list="Event types"
      actions={(type) => type && !isEditing && <Actions type={type} />}
    >
      {(type) => {
        if (type === null) return <Unknown name={name} />;
        return isEditing ? <EventTypeEdit type={type} /> : <Reference type={type} />;
      }}
    </ResourcePage>
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
        <ButtonLink to={`/events?search=${encodeURIComponent(name)}`}>Search events</ButtonLink>
      )}
    </Empty>
  );
}

function Actions({ type: { uid, name, deprecated_at: deprecatedAt } }: { type: EventType }) {
  const isDeprecated = deprecatedAt !== null;
  const begin = () => setQuery({ edit: '1' });
  return (
    <>
      {!isPortal.value && (
        <ButtonLink to={`/events?search=${encodeURIComponent(name)}`}>View events</ButtonLink>
      )}
      {mayManage() && (
        <ButtonLink to={`/subscriptions/new?types=${encodeURIComponent(name)}`}>
          Subscribe
        </ButtonLink>
      )}
      {may('member') && (
        <>
          <ActionButton
            work={() => api().eventTypes.update(uid, { deprecated: !isDeprecated })}
            told={
              isDeprecated
                ? `${name} is current again.`
                : `${name} is deprecated. Its events are still delivered.`
            }
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

function EventTypeEdit({ type }: { type: EventType }) {
  const end = () => setQuery({ edit: undefined }, { replace: true });
  const edit = useEdit<EventType, EventTypeDraft, ChangedEventType>(type, {
    what: 'event type',
    rows: api().eventTypes,
    draftOf,
    fieldsOf,
    onSaved: () => {
      end();
      toast('Saved.');
    },
  });
  return (
    <EventTypeForm
      form={edit}
      verb="Save"
      isReady={edit.isReady}
      actions={<Button onPress={end}>Cancel</Button>}
    />
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
