import type { Endpoint } from '@gateway/client';
import { count, fieldError, Select, TextField, type Widget } from '../../../components/index.js';

const RETRIES = [
  ['', 'Project default'],
  ['exponential', 'Exponential: each wait doubles'],
  ['linear', 'Linear: the same wait each time'],
] as const;
const DEFAULT = { duration: 10, retry_count: 10, max_seconds: 7200 };

type RetryStrategy = NonNullable<Endpoint['strategy']>;

export const RetryFields: Widget = ({ value, onChange, error }) => {
  const strategy = (value['strategy'] ?? undefined) as RetryStrategy | undefined;
  const change = (next: object | null) => onChange({ ...value, strategy: next });
  const number = (name: keyof typeof DEFAULT) => ({
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
      {strategy && (
        <div class="field-row">
          <TextField label="Number of retries" {...number('retry_count')} />
          <TextField
            label={strategy.type === 'linear' ? 'Wait in seconds' : 'First wait in seconds'}
            {...number('duration')}
          />
          {strategy.type === 'exponential' && (
            <TextField label="Longest wait in seconds" {...number('max_seconds')} />
          )}
        </div>
      )}
    </>
  );
};

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
