import type { Endpoint } from '@gateway/client';
import {
  fieldError,
  Select,
  TextField,
  type Value,
  type Widget,
} from '../../../components/index.js';
import { count } from '../../../format/number.js';

const DEFAULT = { max_events: 100, max_bytes: 1_048_576, max_wait_ms: 1_000 };
const LABELS = {
  max_events: 'Events at most',
  max_bytes: 'Bytes at most',
  max_wait_ms: 'Wait in ms',
};

export const BatchFields: Widget = ({ schema, value, onChange, error }) => {
  const batch = value['batch'] as Value | null | undefined;
  const change = (next: Value | null) => onChange({ ...value, batch: next });
  return (
    <>
      <Select
        label="Batches"
        value={batch ? 'batch' : 'single'}
        options={[
          ['single', 'One event per request'],
          ['batch', 'Several events per request'],
        ]}
        hint={schema.description}
        onChange={(kind) => change(kind === 'batch' ? DEFAULT : null)}
        error={fieldError(error, 'batch')}
      />
      {batch && (
        <div class="field-row">
          {Object.entries(LABELS).map(([name, label]) => (
            <TextField
              key={name}
              label={label}
              type="number"
              value={String(batch[name])}
              onChange={(typed) => change({ ...batch, [name]: typed })}
              error={fieldError(error, `batch.${name}`)}
            />
          ))}
        </div>
      )}
    </>
  );
};

/** Such as `up to 100 events or 1,048,576 bytes, after 1,000 ms`. */
export function batchWords({ batch }: Endpoint): string | undefined {
  return batch
    ? `up to ${count(batch.max_events)} events or ${count(batch.max_bytes)} bytes, after ${count(batch.max_wait_ms)} ms`
    : undefined;
}
