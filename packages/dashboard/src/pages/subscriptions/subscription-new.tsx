import { useAction, useDraft } from '../../api/change.js';
import { api, given } from '../../api/client.js';
import { toast } from '../../components/feedback.js';
import { ButtonLink, Page } from '../../components/layout.js';
import { navigate, param, projectHref, projectPath } from '../../router/location.js';
import { fieldsOf, newSubscription } from './subscription-draft.js';
import { SubscriptionForm } from './subscription-form.js';

/** Query parameters can preset the endpoint and the event types. */
export default function SubscriptionNew() {
  const draft = useDraft({
    ...newSubscription,
    ...given({ endpointId: param('endpoint'), types: param('types') }),
  });
  const fields = fieldsOf(draft.values);
  const create = useAction(async () => {
    if (!fields) return;
    const { uid, name } = await api().subscriptions.create(fields);
    toast(`${name} was created. Matching events are sent from now on.`);
    navigate(projectPath(`/subscriptions/${uid}`), { replace: true });
  });
  return (
    <Page
      title="New subscription"
      above={<a href={projectHref('/subscriptions')}>Subscriptions</a>}
    >
      <SubscriptionForm
        draft={draft}
        isNew
        action={create}
        verb="Create subscription"
        isReady={fields !== undefined}
        actions={<ButtonLink href={projectHref('/subscriptions')}>Cancel</ButtonLink>}
      />
    </Page>
  );
}
