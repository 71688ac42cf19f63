import { api } from '../../api/client.js';
import { given } from '../../api/given.js';
import { useAction } from '../../api/use-action.js';
import { useDraft } from '../../api/use-draft.js';
import { toast } from '../../components/feedback/toast.js';
import { ButtonLink } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { navigate, param } from '../../router/location.js';
import { projectHref, projectPath } from '../../router/project-path.js';
import { fieldsOf, newSubscription } from './subscription-draft.js';
import { SubscriptionForm } from './subscription-form.js';

/** Links can preset the endpoint and the event types in the query. */
export default function SubscriptionNew() {
  const draft = useDraft({
    ...newSubscription,
    ...given({ endpointId: param('endpoint'), types: param('types') }),
  });
  const fields = fieldsOf(draft.values);
  const create = useAction(async () => {
    if (!fields) return;
    const { uid, name } = await api().subscriptions.create(fields);
    toast(`${name} was created: events that match are sent from now on.`);
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
        verb="Create"
        isReady={fields !== undefined}
        actions={<ButtonLink href={projectHref('/subscriptions')}>Cancel</ButtonLink>}
      />
    </Page>
  );
}
