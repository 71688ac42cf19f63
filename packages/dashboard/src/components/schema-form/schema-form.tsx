import { GatewayApiError } from '@gateway/client';
import type { ComponentChildren, JSX } from 'preact';
import { useId } from 'preact/hooks';
import { Description, SchemaField } from './schema-field.js';
import { fieldsOf, type FormSchema, kindOf, labelOf, type Value } from './schema.js';

/** `value` is the whole object, so that a widget can change other fields too. */
export type Widget = (props: Omit<Props, 'path' | 'widgets'>) => JSX.Element | null;

interface Props {
  readonly schema: FormSchema;
  readonly value: Value;
  readonly onChange: (value: Value) => void;
  /** The server's version, with stored secrets masked. */
  readonly stored?: Value;
  readonly error?: Error | undefined;
  /** In the request, such as `pub_sub.kafka`. Empty for the body. */
  readonly path: string;
  /** By field name. They replace generated inputs. */
  readonly widgets?: Readonly<Record<string, Widget>>;
  readonly hasFocus?: boolean;
}

/**
 * Generated from the JSON Schema with titles, descriptions, defaults, choices, secrets, groups and
 * conditional fields. `submitted` returns the value to send.
 */
export function SchemaForm({
  schema,
  value,
  onChange,
  stored = {},
  error,
  path,
  widgets = {},
  hasFocus = false,
}: Props) {
  return (
    <>
      {fieldsOf(schema, value).map(({ name, schema: field, isRequired }, index) => {
        const Widget = widgets[name];
        if (Widget)
          return <Widget key={name} schema={field} {...{ value, onChange, stored, error }} />;
        const change = (next: unknown) => onChange({ ...value, [name]: next });
        const at = path === '' ? name : `${path}.${name}`;
        if (kindOf(field) !== 'group') {
          return (
            <SchemaField
              key={name}
              name={name}
              schema={field}
              value={value[name]}
              onChange={change}
              isRequired={isRequired}
              stored={stored[name]}
              error={errorAt(error, at)}
              hasFocus={hasFocus && index === 0}
            />
          );
        }
        return (
          <Group
            key={name}
            legend={labelOf(name, field)}
            schema={field}
            error={errorAt(error, at, false)}
          >
            <SchemaForm
              schema={field}
              value={(value[name] ?? {}) as Value}
              onChange={change}
              stored={(stored[name] ?? {}) as Value}
              error={error}
              path={at}
            />
          </Group>
        );
      })}
    </>
  );
}

function Group({
  legend,
  schema: { description },
  error,
  children,
}: {
  legend: string;
  schema: FormSchema;
  error: string | undefined;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <fieldset class="schema-group" aria-describedby={description && id}>
      <legend>{legend}</legend>
      {description && (
        <p class="field-hint" id={id}>
          <Description text={description} />
        </p>
      )}
      {error && (
        <p class="field-error">
          {legend} {error}
        </p>
      )}
      {children}
    </fieldset>
  );
}

/** With `withElements`, the error of the first invalid element. */
export function errorAt(
  error: Error | undefined,
  path: string,
  withElements = true,
): string | undefined {
  if (!(error instanceof GatewayApiError)) return undefined;
  const own = error.errors.find(({ field }) => field === path);
  if (own) return own.sentence;
  const element = withElements
    ? error.errors.find(({ field }) => field.startsWith(`${path}.`))
    : undefined;
  if (!element) return undefined;
  const index = Number(element.field.slice(path.length + 1));
  return Number.isInteger(index) ? `in line ${index + 1} ${element.sentence}` : element.sentence;
}
