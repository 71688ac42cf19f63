import type { ChangedEventType, EventType } from '@gateway/client';
import { api } from '../../api/index.js';
import {
  ButtonLink,
  errorBelow,
  Form,
  type FormProps,
  type FormState,
  Page,
  Panel,
  TextArea,
  TextField,
  toast,
  useForm,
} from '../../components/index.js';
import { valueOf } from '../../format/json.js';
import { navigate, projectPath } from '../../router/location.js';
import { SchemaTable } from './schema-table.js';

export default function EventTypeNew() {
  const form = useForm(newEventType, async ({ name }) => {
    if (!fields) return;
    const created = await api().eventTypes.create({ name: name.trim(), ...fields });
    toast(`${created.name} was created.`);
    navigate(projectPath(pathOf(created)), { replace: true });
  });
  const fields = fieldsOf(form.values);
  return (
    <Page title="New event type" list="Event types">
      <EventTypeForm
        form={form}
        isNew
        verb="Create event type"
        isReady={fields !== undefined}
        actions={<ButtonLink to="/event-types">Cancel</ButtonLink>}
      />
    </Page>
  );
}

/**
 * A table shows the fields as readers see them.
 *
 * @param props.isNew whether the name can be set; it is fixed later, because events and
 *   subscriptions refer to it
 */
export function EventTypeForm({
  form,
  isNew = false,
  ...props
}: Pick<FormProps, 'verb' | 'isReady' | 'actions'> & {
  form: FormState<EventTypeDraft>;
  isNew?: boolean;
}) {
  const { values, text, error } = form;
  const [schema, example] = [valueOf(values.schema), valueOf(values.example)];
  return (
    <div class="columns">
      <Panel title="Event type">
        <Form {...props} action={form}>
          {isNew && (
            <TextField
              label="Name"
              isMono
              isRequired
              hasFocus
              hint="Dots separate levels, such as order.paid. The name cannot be changed later."
              {...text('name')}
            />
          )}
          <TextArea
            label="Description"
            rows={3}
            hint="Tells receivers when these events are sent."
            {...text('description')}
          />
          <TextArea
            label="Schema"
            isMono
            rows={12}
            hint="JSON Schema 2020-12 of the data. For documentation only: events are not validated against the schema."
            {...text('schema')}
            error={schema.problem ?? errorBelow(error, 'json_schema')}
          />
          <TextArea
            label="Example"
            isMono
            rows={8}
            hint="Example data in JSON. Test events send this data."
            {...text('example')}
            error={example.problem ?? errorBelow(error, 'example')}
          />
        </Form>
      </Panel>
      <Panel title="Field preview">
        {schema.problem === undefined && schema.value !== null ? (
          <SchemaTable schema={schema.value} />
        ) : (
          <p class="muted">Enter a schema to preview its fields.</p>
        )}
      </Panel>
    </div>
  );
}

/** Schema and example are JSON text. */
const newEventType = { name: '', description: '', schema: '', example: '' };
export type EventTypeDraft = typeof newEventType;

const textOf = (value: unknown) => (value === null ? '' : JSON.stringify(value, null, 2));

export function draftOf({
  name,
  description,
  json_schema: schema,
  example,
}: EventType): EventTypeDraft {
  return { name, description, schema: textOf(schema), example: textOf(example) };
}

/** Undefined while the schema or example is invalid JSON. */
export function fieldsOf({
  description,
  schema,
  example,
}: EventTypeDraft): Omit<ChangedEventType, 'deprecated'> | undefined {
  const [schemaValue, exampleValue] = [valueOf(schema), valueOf(example)];
  if (schemaValue.problem !== undefined || exampleValue.problem !== undefined) return undefined;
  return {
    description: description.trim(),
    json_schema: schemaValue.value,
    example: exampleValue.value,
  };
}

/** Other pages have these paths. An event type with such a name has its id in the path. */
const TAKEN = ['new'];

/** Relative to the project. */
export function pathOf({ uid, name }: Pick<EventType, 'uid' | 'name'>): string {
  return `/event-types/${TAKEN.includes(name) ? uid : encodeURIComponent(name)}`;
}
