import { api, given, useDraft } from '../../api/index.js';
import {
  ButtonLink,
  errorBelow,
  fieldError,
  Form,
  type FormProps,
  type FormState,
  Page,
  Panel,
  Select,
  TextArea,
  TextField,
  toast,
  useForm,
} from '../../components/index.js';
import { objectOf } from '../../format/json.js';
import { navigate, param, projectPath } from '../../router/location.js';
import { useEndpointChoice } from './endpoint-names.js';
import { emptySample, MatchTest, useMatchTest } from './match-test.js';
import { fieldsOf, newSubscription, type SubscriptionDraft } from './subscription-draft.js';

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

export function SubscriptionForm({
  form,
  isNew = false,
  ...props
}: Pick<FormProps, 'verb' | 'isReady' | 'actions'> & {
  form: FormState<SubscriptionDraft>;
  isNew?: boolean;
}) {
  const { values, text, error } = form;
  const sample = useDraft(emptySample);
  const match = useMatchTest(values, sample.values);
  const endpoints = useEndpointChoice(values.endpointId);
  const filter = (part: 'body' | 'headers' | 'message') => ({
    ...text(part),
    error:
      objectOf(values[part]).problem ??
      fieldError(match.error, `filter.${part}`) ??
      fieldError(error, `filter_config.filter.${part}`),
  });
  return (
    <div class="columns">
      <Panel title="Subscription details">
        <Form {...props} action={form}>
          <TextField label="Name" {...text('name')} isRequired hasFocus={isNew} />
          <Select
            label="Endpoint"
            options={values.endpointId === '' ? [['', 'Choose one'], ...endpoints] : endpoints}
            {...text('endpointId', 'endpoint_id')}
          />
          <TextField
            label="Event types"
            isMono
            hint={
              <>
                <code>*</code>: every type. <code>order.*</code>: every type below order. Separate
                types with commas.
              </>
            }
            {...text('types')}
            error={
              errorBelow(match.error, 'event_types') ??
              errorBelow(error, 'filter_config.event_types')
            }
          />
          <TextArea
            label="Data filter"
            isMono
            rows={7}
            hint={
              <>
                JSON. All conditions must match:{' '}
                <code>{'{"total": {"$gte": 100}, "customer.tier": "gold"}'}</code>. Leave empty to
                match every event of these types. Operators: $eq, $neq, $gt, $gte, $lt, $lte, $in,
                $nin, $exist, $or, $and. A value also matches a list that contains it, and{' '}
                <code>{'"a\\\\.b"'}</code> is a name with a dot.
              </>
            }
            {...filter('body')}
          />
          <TextArea
            label="Header filter"
            isMono
            rows={2}
            hint={
              <>
                The same for custom headers: <code>{'{"x-region": "eu"}'}</code>
              </>
            }
            {...filter('headers')}
          />
          <TextArea
            label="Message filter"
            isMono
            rows={2}
            hint={
              <>
                The same for the message of the broker, which samples do not have:{' '}
                <code>{'{"topic": "orders"}'}</code>
              </>
            }
            {...filter('message')}
          />
        </Form>
      </Panel>
      <MatchTest draft={sample} match={match} />
    </div>
  );
}
