import type { ChangedSubscription, Subscription } from '@gateway/client';
import { changed, useDraft, useEdit } from '../../api/change.js';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Conflict } from '../../components/conflict.js';
import { Badge } from '../../components/data.js';
import { Loaded, toast } from '../../components/feedback.js';
import { ActionButton, ConfirmButton } from '../../components/form.js';
import { ButtonLink, Page } from '../../components/layout.js';
import { navigate, projectHref, projectId, projectPath, query } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { mayManage } from '../../session/session.js';
import { draftOf, fieldsOf } from './subscription-draft.js';
import { SubscriptionForm } from './subscription-form.js';
import { SubscriptionTabs } from './subscription-tabs.js';

export default function SubscriptionPage({ params: { id = '' } }: PageProps) {
  const resource = useResource(`${projectId.value} subscription ${id}`, (signal) =>
    api().subscriptions.get(id, { signal }),
  );
  const { data } = resource;
  return (
    <Page
      title={data?.name ?? 'Subscription'}
      above={<a href={projectHref('/subscriptions')}>Subscriptions</a>}
      actions={data && <Actions subscription={data} onChange={resource.refresh} />}
    >
      <SubscriptionTabs id={id} shown="settings" />
      <Loaded resource={resource} lines={12}>
        {(subscription) => (
          <>
            {subscription.is_disabled && (
              <p>
                <Badge status="disabled" tone="warn" /> This subscription matches no events until it
                is enabled.
              </p>
            )}
            <EditForm
              key={String(subscription.is_disabled)}
              subscription={subscription}
              onSaved={resource.refresh}
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({
  subscription: { uid, name, is_disabled: isOff },
  onChange,
}: {
  readonly subscription: Subscription;
  readonly onChange: () => void;
}) {
  if (!mayManage()) return null;
  return (
    <>
      <ActionButton
        kind={isOff ? 'main' : 'plain'}
        work={async () => {
          await api().subscriptions.toggleStatus(uid);
          toast(isOff ? `${name} is enabled.` : `${name} is disabled and matches no events.`);
          onChange();
        }}
      >
        {isOff ? 'Enable' : 'Disable'}
      </ActionButton>
      <ConfirmButton
        label="Delete…"
        title={`Delete ${name}?`}
        verb="Delete"
        work={async () => {
          await api().subscriptions.delete(uid);
          toast(`${name} was deleted.`);
          navigate(projectPath('/subscriptions'));
        }}
      >
        <p>Matching events are no longer sent to its endpoint. Existing deliveries are kept.</p>
      </ConfirmButton>
    </>
  );
}

function EditForm({
  subscription,
  onSaved,
}: {
  readonly subscription: Subscription;
  readonly onSaved: () => void;
}) {
  const draft = useDraft(draftOf(subscription));
  const event = query.value.get('event');
  const edit = useEdit<Subscription, ChangedSubscription>(subscription, {
    write: (changes, options) => api().subscriptions.update(subscription.uid, changes, options),
    read: () => api().subscriptions.get(subscription.uid),
    onSaved: () => {
      toast('Saved. The change applies to new events.');
      onSaved();
    },
  });
  const [before, after] = [fieldsOf(draftOf(edit.base)), fieldsOf(draft.values)];
  return (
    <SubscriptionForm
      draft={draft}
      action={{ ...edit, run: () => before && after && edit.save(changed(before, after)) }}
      verb={mayManage() ? 'Save' : undefined}
      isReady={after !== undefined}
      actions={
        <>
          <ButtonLink href={projectHref(`/endpoints/${subscription.endpoint_id}`)}>
            Open endpoint
          </ButtonLink>
          {event && <ButtonLink href={projectHref(`/events/${event}`)}>Back to event</ButtonLink>}
        </>
      }
    >
      <Conflict
        what="subscription"
        edit={edit}
        onTheirs={(theirs) => draft.replace(draftOf(theirs))}
      />
    </SubscriptionForm>
  );
}
