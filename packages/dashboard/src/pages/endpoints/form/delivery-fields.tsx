import type { Draft } from '../../../api/change.js';
import { fieldError, Select, TextField } from '../../../components/field.js';
import type { EndpointDraft } from './endpoint-draft.js';

const LIMITS = [
  ['project', 'As the project'],
  ['none', 'No limit'],
  ['own', 'Requests in a time'],
] as const;
const RETRIES = [
  ['project', 'As the project'],
  ['exponential', 'Exponential: each wait doubles'],
  ['linear', 'Linear: the same wait each time'],
] as const;

export function DeliveryFields({
  draft: { values, set },
  error,
}: {
  readonly draft: Draft<EndpointDraft>;
  readonly error: Error | undefined;
}) {
  const number = (
    name:
      | 'timeout'
      | 'concurrency'
      | 'limit'
      | 'limitSeconds'
      | 'retryCount'
      | 'retrySeconds'
      | 'retryMaxSeconds',
    field: string,
  ) => ({
    ...{ type: 'number' as const, value: values[name], onChange: set(name) },
    error: fieldError(error, field),
  });
  return (
    <>
      <TextField
        label="Timeout in seconds"
        hint="From connecting to the last byte of the answer."
        {...number('timeout', 'http_timeout')}
      />
      <Select
        label="Retries"
        value={values.retryKind}
        options={RETRIES}
        onChange={(kind) => set('retryKind')(kind as EndpointDraft['retryKind'])}
        error={fieldError(error, 'strategy')}
      />
      {values.retryKind !== 'project' && (
        <div class="field-row">
          <TextField label="Number of retries" {...number('retryCount', 'strategy.retry_count')} />
          <TextField
            label={values.retryKind === 'linear' ? 'Wait in seconds' : 'First wait in seconds'}
            {...number('retrySeconds', 'strategy.duration')}
          />
          {values.retryKind === 'exponential' && (
            <TextField
              label="Longest wait in seconds"
              {...number('retryMaxSeconds', 'strategy.max_seconds')}
            />
          )}
        </div>
      )}
      <Select
        label="Rate limit"
        value={values.limitKind}
        options={LIMITS}
        onChange={(kind) => set('limitKind')(kind as EndpointDraft['limitKind'])}
      />
      {values.limitKind === 'own' && (
        <div class="field-row">
          <TextField label="Requests" {...number('limit', 'rate_limit')} />
          <TextField label="In seconds" {...number('limitSeconds', 'rate_limit_duration')} />
        </div>
      )}
      <TextField
        label="Concurrency"
        hint="Requests under way at a time, per agent. Empty: as the instance."
        {...number('concurrency', 'concurrency')}
      />
    </>
  );
}
