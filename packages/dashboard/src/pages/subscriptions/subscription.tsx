import type { ChangedSubscription, Subscription } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import {
  ActionButton,
  Badge,
  ButtonLink,
  DeleteButton,
  ResourcePage,
  toast,
  useEdit,
} from '../../components/index.js';
import { query } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { mayManage } from '../../session/session.js';
import { draftOf, fieldsOf, type SubscriptionDraft } from './subscription-draft.js';
import { SubscriptionForm } from './subscription-form.js';
import { SubscriptionTabs } from './subscription-tabs.js';

export default function SubscriptionPage({ id }: PageProps) {
  const resource = useResource(`subscription ${id}`, (options) =>
    api().subscriptions.get(id, options),
  );
  return (
    <ResourcePage
      resource={resource}
      title={({ name }) => name}
      name="Subscription"
      list="Subscriptions"
      actions={(it) => <Actions subscription={it} />}
      tabs={<SubscriptionTabs id={id} shown="settings" />}
    >
      {(subscription) => (
        <>
          {subscription.is_disabled && (
            <p>
              <Badge status="disabled" tone="warn" /> This subscription matches no events until it
              is enabled.
            </p>
          )}
          <EditForm key={String(subscription.is_disabled)} subscription={subscription} />
        </>
      )}
    </ResourcePage>
  );
}

function Actions({
  subscription: { uid, name, is_disabled: isOff },
}: {
  subscription: Subscription;
}) {
  if (!mayManage()) return null;
  return (
    <>
      <ActionButton
        kind={isOff ? 'main' : 'plain'}
        work={() => api().subscriptions.toggleStatus(uid)}
        told={isOff ? `${name} is enabled.` : `${name} is disabled and matches no events.`}
      >
        {isOff ? 'Enable' : 'Disable'}
      </ActionButton>
      <DeleteButton name={name} list="/subscriptions" work={() => api().subscriptions.delete(uid)}>
        <p>Matching events are no longer sent to its endpoint. Existing deliveries are kept.</p>
      </DeleteButton>
    </>
  );
}

function EditForm({ subscription }: { subscription: Subscription }) {
  const event = query.value.get('event');
  const edit = useEdit<Subscription, SubscriptionDraft, ChangedSubscription>(subscription, {
    what: 'subscription',
    rows: api().subscriptions,
    draftOf,
    fieldsOf,
    onSaved: () => toast('Saved. The change applies to new events.'),
  });
  return (
    <SubscriptionForm
      form={edit}
      verb={mayManage() ? 'Save' : undefined}
      isReady={edit.isReady}
      actions={
        <>
          <ButtonLink to={`/endpoints/${subscription.endpoint_id}`}>Open endpoint</ButtonLink>
          {event && <ButtonLink to={`/events/${event}`}>Back to event</ButtonLink>}
        </>
      }
    />
  );
}
