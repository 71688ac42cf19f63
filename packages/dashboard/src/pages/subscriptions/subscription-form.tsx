import type { ComponentChildren } from 'preact';
import { useDraft, type Draft } from '../../api/change.js';
import { errorBelow, fieldError, Select, TextArea, TextField } from '../../components/field.js';
import { Form, type FormProps } from '../../components/form.js';
import { Panel } from '../../components/layout.js';
import { objectOf } from '../../format/json.js';
import { param } from '../../router/location.js';
import { useEndpointChoice } from './endpoint-names.js';
import { MatchTest, type Samples } from './match-test.js';
import { emptySample } from './sample.js';
import type { SubscriptionDraft } from './subscription-draft.js';
import { useMatchTest } from './use-match-test.js';

/** Next to a test of the filters on a sample. */
export function SubscriptionForm({
  draft,
  isNew = false,
  children,
  ...form
}: Omit<FormProps, 'children'> & {
  readonly draft: Draft<SubscriptionDraft>;
  readonly isNew?: boolean;
  readonly children?: ComponentChildren;
}) {
  const { error } = form.action;
  const { values, set } = draft;
  const sample = useDraft<Samples>({ ...emptySample, event: param('event') });
  const match = useMatchTest(values, sample.values);
  const endpoints = useEndpointChoice(values.endpointId);
  const filterError = (part: 'body' | 'headers') =>
    objectOf(values[part]).problem ??
    fieldError(match.error, `filter.${part}`) ??
    fieldError(error, `filter_config.filter.${part}`);
  return (
    <div class="beside">
      <Panel title="Subscription details">
        <Form {...form}>
          <TextField
            label="Name"
            value={values.name}
            onChange={set('name')}
            isRequired
            hasFocus={isNew}
            error={fieldError(error, 'name')}
          />
          <Select
            label="Endpoint"
            value={values.endpointId}
            options={values.endpointId === '' ? [['', 'Choose one'], ...endpoints] : endpoints}
            onChange={set('endpointId')}
            error={fieldError(error, 'endpoint_id')}
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
            value={values.types}
            onChange={set('types')}
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
            value={values.body}
            onChange={set('body')}
            error={filterError('body')}
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
            value={values.headers}
            onChange={set('headers')}
            error={filterError('headers')}
          />
          {children}
        </Form>
      </Panel>
      <MatchTest draft={sample} match={match} />
    </div>
  );
}
