import { own } from '../../format/own.js';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain';

const TONES: Readonly<Record<string, Tone>> = {
  success: 'ok',
  processed: 'ok',
  active: 'ok',
  running: 'ok',
  ok: 'ok',
  replayed: 'ok',
  retry: 'warn',
  paused: 'warn',
  degraded: 'warn',
  'half-open': 'warn',
  failure: 'bad',
  failed: 'bad',
  inactive: 'bad',
  open: 'bad',
  down: 'bad',
  quarantined: 'bad',
  scheduled: 'info',
  processing: 'info',
  pending: 'info',
};

/** A coloured status, in the API's word unless `label` is given. */
export function Badge({
  status,
  tone = own(TONES, status) ?? 'plain',
  label = status,
}: {
  readonly status: string;
  readonly tone?: Tone;
  readonly label?: string;
}) {
  return <span class={`badge ${tone}`}>{label}</span>;
}
