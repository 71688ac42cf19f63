import type { Draft } from '../../api/change.js';
import { Select, TextField, textsOf } from '../../components/field.js';
import type { ProjectDraft } from './project-draft.js';

export function ProjectFields({
  draft,
  error,
}: {
  draft: Draft<ProjectDraft>;
  error: Error | undefined;
}) {
  const { values } = draft;
  const text = textsOf(draft, error);
  const number = (name: Parameters<typeof text>[0], field: string) => ({
    type: 'number' as const,
    ...text(name, `config.${field}`),
  });
  return (
    <>
      <TextField label="Name" isRequired {...text('name')} />
      <fieldset class="field-group">
        <legend>Retries, unless an endpoint has its own</legend>
        <Select
          label="Wait"
          options={[
            ['exponential', 'Exponential: each wait doubles'],
            ['linear', 'Linear: the same wait each time'],
          ]}
          {...text('retryType')}
        />
        <div class="field-row">
          <TextField label="Number of retries" {...number('retryCount', 'strategy.retry_count')} />
          <TextField
            label={values.retryType === 'linear' ? 'Wait in seconds' : 'First wait in seconds'}
            {...number('retrySeconds', 'strategy.duration')}
          />
          {values.retryType === 'exponential' && (
            <TextField
              label="Longest wait in seconds"
              {...number('retryMaxSeconds', 'strategy.max_seconds')}
            />
          )}
        </div>
      </fieldset>
      <fieldset class="field-group">
        <legend>Limits of each endpoint</legend>
        <Select
          label="Rate limit, unless an endpoint has its own"
          options={[
            ['none', 'No limit'],
            ['own', 'Requests in a time'],
          ]}
          {...text('limitKind')}
        />
        {values.limitKind === 'own' && (
          <div class="field-row">
            <TextField label="Requests" {...number('limit', 'ratelimit.count')} />
            <TextField label="In seconds" {...number('limitSeconds', 'ratelimit.duration')} />
          </div>
        )}
        <Select
          label="Circuit breaker"
          hint="Sends nothing to an endpoint for a while when too many of its requests fail."
          options={[
            ['instance', 'As the instance'],
            ['own', 'Of this project'],
          ]}
          {...text('breakerKind')}
        />
        {values.breakerKind === 'own' && (
          <div class="field-row">
            <TextField
              label="Percent that fail"
              {...number('threshold', 'circuit_breaker.failure_threshold')}
            />
            <TextField
              label="Of at least so many requests"
              {...number('minimum', 'circuit_breaker.minimum_request_count')}
            />
            <TextField
              label="In minutes"
              {...number('window', 'circuit_breaker.observability_window')}
            />
            <TextField
              label="Pause in seconds"
              {...number('errorTimeout', 'circuit_breaker.error_timeout')}
            />
          </div>
        )}
        <TextField
          label="Disable after days of failures only"
          hint="A notification warns before. Empty: never."
          {...number('disableDays', 'disable_after_days')}
        />
      </fieldset>
      <fieldset class="field-group">
        <legend>Events</legend>
        <TextField
          label="Days that events are kept"
          hint="With their deliveries and attempts. Empty: as the instance, by its setting retention.days."
          {...number('retentionDays', 'retention.days')}
        />
        <Select
          label="Events of types that the project does not have"
          options={[
            ['accept', 'are accepted'],
            ['reject', 'are rejected'],
          ]}
          {...text('unknownTypes')}
        />
      </fieldset>
      <fieldset class="field-group">
        <legend>Plain signature, beside that of Standard Webhooks</legend>
        <TextField label="Header" isMono {...text('header', 'config.signature.header')} />
        <div class="field-row">
          <Select
            label="Hash"
            options={[
              ['SHA256', 'SHA-256'],
              ['SHA512', 'SHA-512'],
            ]}
            {...text('hash')}
          />
          <Select
            label="Encoding"
            options={[
              ['hex', 'hex'],
              ['base64', 'base64'],
            ]}
            {...text('encoding')}
          />
        </div>
      </fieldset>
    </>
  );
}
