import type { Endpoint } from '@gateway/client';
import { fieldError, Select, TextField, type Widget } from '../../../components/index.js';
import { count } from '../../../format/number.js';

const KINDS = {
  project: { rate_limit: null, rate_limit_duration: null },
  none: { rate_limit: 0, rate_limit_duration: null },
  own: { rate_limit: 100, rate_limit_duration: 1 },
};

export const RateLimitFields: Widget = ({ value, onChange, error }) => {
  const { rate_limit: limit = null, rate_limit_duration: seconds } = value;
  const number = (name: keyof (typeof KINDS)['own'], shown: unknown) => ({
    type: 'number' as const,
    value: String(shown),
    onChange: (typed: string) => onChange({ ...value, [name]: typed }),
    error: fieldError(error, name),
  });
  return (
    <>
      <Select
        label="Rate limit"
        value={limit === null ? 'project' : limit === 0 ? 'none' : 'own'}
        options={[
          ['project', 'Project default'],
          ['none', 'No limit'],
          ['own', 'Requests per period'],
        ]}
        onChange={(kind) => onChange({ ...value, ...KINDS[kind as keyof typeof KINDS] })}
      />
      {limit !== null && limit !== 0 && (
        <div class="field-row">
          <TextField label="Requests" {...number('rate_limit', limit)} />
          <TextField label="Period in seconds" {...number('rate_limit_duration', seconds ?? 1)} />
        </div>
      )}
    </>
  );
};

/** Such as `10 requests per 5 s`. Undefined if the project's limit applies. */
export function limitWords({
  rate_limit: limit,
  rate_limit_duration: seconds,
}: Endpoint): string | undefined {
  if (limit === null) return undefined;
  if (limit === 0) return 'none';
  return `${count(limit)} requests per ${seconds === null || seconds === 1 ? 'second' : `${count(seconds)} s`}`;
}
