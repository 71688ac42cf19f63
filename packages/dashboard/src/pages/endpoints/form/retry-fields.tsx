import type { Endpoint } from '@gateway/client';
import { fieldError, Select, TextField, type Widget } from '../../../components/index.js';
import { count } from '../../../format/number.js';

export const BACKOFFS = [
  ['exponential', 'Exponential: each wait doubles'],
  ['linear', 'Linear: the same wait each time'],
] as const;
const RETRIES = [['', 'Project default'], ...BACKOFFS] as const;
const DEFAULT = { duration: 10, retry_count: 10, max_seconds: 7200 };

type RetryStrategy = NonNullable<Endpoint['strategy']>;

export const RetryFields: Widget = ({ value, onChange, error }) => {
  const strategy = (value['strategy'] ?? undefined) as RetryStrategy | undefined;
  const change = (next: object | null) => onChange({ ...value, strategy: next });
  const number = (name: NumberName) => ({
    type: 'number' as const,
    value: String(strategy?.[name] ?? ''),
    onChange: (typed: string) => change({ ...strategy, [name]: typed }),
    error: fieldError(error, `strategy.${name}`),
  });
  return (
    <>
      <Select
        label="Retries"
        value={strategy?.type ?? ''}
        options={RETRIES}
        onChange={(type) => {
          const { max_seconds: max = DEFAULT.max_seconds, ...others } = { ...DEFAULT, ...strategy };
          if (type === '') change(null);
          else change({ ...others, type, ...(type === 'exponential' ? { max_seconds: max } : {}) });
        }}
        error={fieldError(error, 'strategy')}
      />
      {strategy && <RetryNumbers type={strategy.type} field={number} />}
    </>
  );
};

type NumberName = keyof typeof DEFAULT;

/** How often and when requests are retried. `field` wires a number to its value. */
export function RetryNumbers({
  type,
  field,
}: {
  type: string;
  field: (name: NumberName) => Omit<Parameters<typeof TextField>[0], 'label'>;
}) {
  const isExponential = type === 'exponential';
  return (
    <div class="field-row">
      <TextField label="Number of retries" {...field('retry_count')} />
      <TextField
        label={isExponential ? 'First wait in seconds' : 'Wait in seconds'}
        {...field('duration')}
      />
      {isExponential && <TextField label="Longest wait in seconds" {...field('max_seconds')} />}
    </div>
  );
}

/** Such as `3, every 10 s`. Undefined if the project's strategy applies. */
export function retryWords(strategy: RetryStrategy | null): string | undefined {
  if (!strategy) return undefined;
  const { type, retry_count: n, duration, max_seconds: max } = strategy;
  if (n === 0) return 'none';
  const waits =
    type === 'linear'
      ? `every ${count(duration)} s`
      : `the first after ${count(duration)} s, each wait doubles${max ? `, up to ${count(max)} s` : ''}`;
  return `${count(n)}, ${waits}`;
}
