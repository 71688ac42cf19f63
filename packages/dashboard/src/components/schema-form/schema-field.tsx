import { useState } from 'preact/hooks';
import { parseExactly } from '../../format/exact-json.js';
import { Checkbox, Select, TextArea, TextField } from '../field.js';
import { Button } from '../layout.js';
import { type FormSchema, isLongText, kindOf, labelOf, MASK } from './schema.js';

interface SchemaFieldProps {
  readonly name: string;
  readonly schema: FormSchema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly isRequired: boolean;
  readonly stored: unknown;
  readonly error: string | undefined;
  readonly hasFocus?: boolean;
}

export function SchemaField({
  name,
  schema,
  value,
  onChange,
  isRequired,
  stored,
  error,
  hasFocus = false,
}: SchemaFieldProps) {
  const { description, default: byDefault, examples = [] } = schema;
  const label = labelOf(name, schema);
  const common = {
    name,
    label,
    isRequired,
    error,
    ...(description ? { hint: <Description text={description} /> } : {}),
  };
  const text =
    typeof value === 'string' ? value : value === undefined || value === null ? '' : wordOf(value);
  const placeholder = schema['x-unset'] ?? exampleOf(byDefault, examples);
  switch (kindOf(schema)) {
    case 'secret':
      return <Secret {...{ name, schema, value, onChange, isRequired, stored, error }} />;
    case 'switch':
      return (
        <>
          <Checkbox
            label={label}
            isOn={(value ?? byDefault ?? false) === true}
            onChange={onChange}
            {...(description ? { hint: description } : {})}
          />
          {error && (
            <p class="field-error">
              {label} {error}
            </p>
          )}
        </>
      );
    case 'choice':
      return (
        <Choice
          {...common}
          values={schema.enum ?? []}
          labels={schema['x-labels'] ?? {}}
          byDefault={byDefault}
          value={value}
          onChange={onChange}
        />
      );
    case 'choices':
      return <Choices {...common} schema={schema} value={value} onChange={onChange} />;
    case 'number':
      return (
        <TextField
          {...common}
          type="number"
          value={text}
          placeholder={placeholder}
          // Keep text such as `1.0` as typed: it may become `1.05`.
          onChange={(typed) =>
            onChange(
              typed === '' ? undefined : String(Number(typed)) === typed ? Number(typed) : typed,
            )
          }
        />
      );
    case 'lines':
      return (
        <TextArea
          {...common}
          hint={<Description text={`${description ?? ''} One per line.`} />}
          rows={2}
          isMono
          value={Array.isArray(value) ? value.join('\n') : text}
          onChange={(typed) =>
            onChange(typed === '' ? undefined : typed.split('\n').map((line) => line.trimStart()))
          }
        />
      );
    case 'long-text':
      return <TextArea {...common} rows={5} isMono value={text} onChange={onChange} />;
    case 'json':
      return <Json {...common} value={value} onChange={onChange} />;
    default:
      return (
        <TextField
          {...common}
          {...(schema.format === 'uri' ? { type: 'url', isMono: true } : {})}
          value={text}
          placeholder={placeholder}
          hasFocus={hasFocus}
          onChange={onChange}
        />
      );
  }
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function exampleOf(byDefault: unknown, examples: readonly unknown[]): string {
  if (byDefault !== undefined && byDefault !== '') return `${wordOf(byDefault)} by default`;
  const [example] = examples;
  return typeof example === 'string' || typeof example === 'number' ? String(example) : '';
}

/** Never shown. A stored secret is kept if nothing is typed. */
function Secret({ name, schema, value, onChange, isRequired, stored, error }: SchemaFieldProps) {
  const label = labelOf(name, schema);
  const isStored = stored === MASK;
  const isRemoved = isStored && value === undefined;
  const state = isRemoved ? 'Removed when you save' : isStored ? 'Stored; type to replace' : '';
  // A password field would join the lines of a PEM key, so it gets a text area, with the state in
  // the hint.
  const told =
    isLongText(schema) && state !== ''
      ? `${schema.description ?? ''} ${state}.`
      : schema.description;
  const field = {
    name,
    label,
    error,
    hint: told && <Description text={told} />,
    isRequired: isRequired && !isStored,
    value: typeof value === 'string' && value !== MASK ? value : '',
    onChange: (typed: string) => onChange(typed !== '' ? typed : isStored ? MASK : undefined),
  };
  return (
    <div class="schema-secret">
      {isLongText(schema) ? (
        <TextArea {...field} rows={4} isMono />
      ) : (
        <TextField {...field} type="password" autocomplete="new-password" placeholder={state} />
      )}
      {isStored && !isRequired && (
        <Button
          kind="quiet"
          label={`${isRemoved ? 'Keep' : 'Remove'} the stored ${label}`}
          onPress={() => onChange(isRemoved ? MASK : undefined)}
        >
          {isRemoved ? 'Keep' : 'Remove'}
        </Button>
      )}
    </div>
  );
}

type Common = Parameters<typeof TextField>[0];

function Choice({
  values,
  labels,
  byDefault,
  value,
  onChange,
  ...common
}: Omit<Common, 'value' | 'onChange'> & {
  values: readonly unknown[];
  labels: Readonly<Record<string, string>>;
  byDefault: unknown;
  value: unknown;
  onChange: (value: unknown) => void;
}) {
  const none =
    byDefault === undefined
      ? common.isRequired
        ? 'Choose one'
        : 'None'
      : `${wordOf(byDefault)} by default`;
  return (
    <Select
      {...common}
      options={[
        ['', none],
        ...values.map((it) => [wordOf(it), labels[wordOf(it)] ?? wordOf(it)] as const),
      ]}
      value={value === undefined || value === null ? '' : wordOf(value)}
      onChange={(chosen) => onChange(values.find((it) => wordOf(it) === chosen))}
    />
  );
}

function Choices({
  label,
  hint,
  error,
  schema,
  value,
  onChange,
}: Pick<Common, 'label' | 'hint' | 'error'> & {
  schema: FormSchema;
  value: unknown;
  onChange: (value: unknown) => void;
}) {
  const { enum: words = [] } = schema.items as FormSchema;
  const chosen = Array.isArray(value) ? (value as unknown[]) : [];
  return (
    <fieldset class="schema-group">
      <legend>{label}</legend>
      {hint && <p class="field-hint">{hint}</p>}
      {error && (
        <p class="field-error">
          {label} {error}
        </p>
      )}
      {words.map((word) => (
        <Checkbox
          key={word}
          label={wordOf(word)}
          isOn={chosen.includes(word)}
          onChange={(isOn) =>
            onChange(words.filter((it) => (it === word ? isOn : chosen.includes(it))))
          }
        />
      ))}
    </fieldset>
  );
}

/**
 * For a value without a specific input. Invalid JSON is sent as a string, so that the server
 * reports what it expects.
 */
function Json({
  value,
  onChange,
  ...common
}: Omit<Common, 'value' | 'onChange'> & { value: unknown; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
  const change = (typed: string) => {
    setText(typed);
    try {
      onChange(typed.trim() === '' ? undefined : parseExactly(typed));
    } catch {
      onChange(typed);
    }
  };
  return (
    <TextArea
      {...common}
      hint={<>{common.hint} Enter JSON.</>}
      isMono
      rows={3}
      value={text}
      onChange={change}
    />
  );
}

/** Backticks are rendered as code. */
export function Description({ text }: { text: string }) {
  return (
    <>
      {text
        .split('`')
        .map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}
    </>
  );
}
