import { api, given } from '../../api/index.js';
import { ButtonLink, Page, toast, useForm } from '../../components/index.js';
import { navigate, param, projectPath } from '../../router/location.js';
import { newSubscription, fieldsOf } from './subscription-draft.js';
import { SubscriptionForm } from './subscription-form.js';

/** Query parameters can preset the endpoint and the event types. */
export default function SubscriptionNew() {
  const preset = given({ endpointId: param('endpoint'), types: param('types') });
  const form = useForm({ ...newSubscription, ...preset }, async () => {
    if (!fields) return;
    const { uid, name } = await api().subscriptions.create(fields);
    toast(`${name} was created. Matching events are sent from now on.`);
    navigate(projectPath(`/subscriptions/${uid}`), { replace: true });
  });
  const fields = fieldsOf(form.values);
  return (
    <Page title="New subscription" list="Subscriptions">
      <SubscriptionForm
        form={form}
        isNew
        verb="Create subscription"
        isReady={fields !== undefined}
        actions={<ButtonLink to="/subscriptions">Cancel</ButtonLink>}
      />
    </Page>
  );
}
