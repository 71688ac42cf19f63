import { own } from '../../format/own.js';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain';

/** Tone of each status of the API. */
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

/** A status as a word on its colour; words are those of the API unless `label` is given. */
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
