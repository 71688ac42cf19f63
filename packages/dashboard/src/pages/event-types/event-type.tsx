import { GatewayApiError, type EventType } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Empty } from '../../components/feedback/empty.js';
import { Loaded } from '../../components/feedback/loading.js';
import { toast } from '../../components/feedback/toast.js';
import { ActionButton } from '../../components/form/action-button.js';
import { Button, ButtonLink } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { query, setQuery } from '../../router/location.js';
import type { PageProps } from '../../router/match.js';
import { isPortal, projectHref, projectId } from '../../router/project-path.js';
import { may, mayManage } from '../../session/access.js';
import { EventTypeEdit } from './event-type-edit.js';
import { Reference } from './reference.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Finds a type by name first, then by id: a name can look like an id. */
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
  const resource = useResource(`${projectId.value} event type ${name}`, (signal) =>
    find(name, signal),
  );
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

function Unknown({ name }: { readonly name: string }) {
  return (
    <Empty title={`There is no event type ${name}`}>
      <p>
        Events may have it all the same, unless the project rejects types that it does not know.
      </p>
      {!isPortal.value && (
        <ButtonLink href={projectHref(`/events?search=${encodeURIComponent(name)}`)}>
          Look for its events
        </ButtonLink>
      )}
    </Empty>
  );
}

function Actions({
  type: { uid, name, deprecated_at: deprecatedAt },
  onChange,
}: {
  readonly type: EventType;
  readonly onChange: () => void;
}) {
  const isDeprecated = deprecatedAt !== null;
  const begin = () => setQuery({ edit: '1' });
  return (
    <>
      {!isPortal.value && (
        <ButtonLink href={projectHref(`/events?search=${encodeURIComponent(name)}`)}>
          Its events
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
                  : `${name} is deprecated: its events are delivered as before.`,
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
