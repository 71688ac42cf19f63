import { type FormState, Select, TextField } from '../../components/index.js';
import { BACKOFFS, RetryNumbers } from '../endpoints/form/retry-fields.js';
import type { ConfigPath, ProjectDraft } from './project-draft.js';

export function ProjectFields({ values, text }: Pick<FormState<ProjectDraft>, 'values' | 'text'>) {
  const config = (path: ConfigPath) => text(path, `config.${path}`);
  const number = (path: ConfigPath) => ({ type: 'number' as const, ...config(path) });
  return (
    <>
      <TextField label="Name" isRequired {...text('name')} />
      <fieldset class="field-group">
        <legend>Default retries</legend>
        <Select label="Backoff" options={BACKOFFS} {...config('strategy.type')} />
        <RetryNumbers type={values['strategy.type']} field={(name) => number(`strategy.${name}`)} />
      </fieldset>
      <fieldset class="field-group">
        <legend>Endpoint limits</legend>
        <Select
          label="Default rate limit"
          options={[
            ['none', 'No limit'],
            ['own', 'Requests per period'],
          ]}
          {...text('limitKind')}
        />
        {values.limitKind === 'own' && (
          <div class="field-row">
            <TextField label="Requests" {...number('ratelimit.count')} />
            <TextField label="Period in seconds" {...number('ratelimit.duration')} />
          </div>
        )}
        <Select
          label="Circuit breaker"
          hint="Pauses deliveries to an endpoint when too many of its requests fail."
          options={[
            ['instance', 'Instance default'],
            ['own', 'Custom'],
          ]}
          {...text('breakerKind')}
        />
        {values.breakerKind === 'own' && (
          <div class="field-row">
            <TextField
              label="Failure threshold in percent"
              {...number('circuit_breaker.failure_threshold')}
            />
            <TextField
              label="Minimum requests"
              {...number('circuit_breaker.minimum_request_count')}
            />
            <TextField
              label="Window in minutes"
              {...number('circuit_breaker.observability_window')}
            />
            <TextField label="Pause in seconds" {...number('circuit_breaker.error_timeout')} />
          </div>
        )}
        <TextField
          label="Days of failure before an endpoint is disabled"
          hint="Disables an endpoint after this many days without an accepted request. A notification warns in advance. Leave empty to disable none."
          {...number('disable_after_days')}
        />
      </fieldset>
      <fieldset class="field-group">
        <legend>Events</legend>
        <TextField
          label="Event retention in days"
          hint="Applies to events, deliveries and attempts. Leave empty for the instance default (retention.days)."
          {...number('retention.days')}
        />
        <Select
          label="Unknown event types"
          options={[
            ['accept', 'Accept'],
            ['reject', 'Reject'],
          ]}
          {...config('unknown_event_types')}
        />
      </fieldset>
      <fieldset class="field-group">
        <legend>Plain signature, in addition to Standard Webhooks</legend>
        <TextField label="Header" isMono {...config('signature.header')} />
        <div class="field-row">
          <Select
            label="Hash"
            options={[
              ['SHA256', 'SHA-256'],
              ['SHA512', 'SHA-512'],
            ]}
            {...config('signature.hash')}
          />
          <Select
            label="Encoding"
            options={[
              ['hex', 'hex'],
              ['base64', 'base64'],
            ]}
            {...config('signature.encoding')}
          />
        </div>
      </fieldset>
    </>
  );
}
