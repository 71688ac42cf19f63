import type { FunctionTestResult } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import { Code } from '../../components/data/code.js';
import { Problem } from '../../components/feedback/problem.js';
import { milliseconds } from '../../format/time.js';
import { PreviewedRoute } from './previewed-route.js';
import type { Preview } from './use-preview.js';

const OUTCOMES = {
  accepted: ['ok', 'would be accepted'],
  dropped: ['warn', 'would be dropped by the function'],
  quarantined: ['bad', 'would be quarantined'],
} as const;

/** What an agent would make of a message: its events with their routes, or why there are none. */
export function PreviewResult({ preview: { result, error, isCurrent, run } }: { readonly preview: Preview }) {
  if (error && isCurrent) return <Problem error={error} retry={run} />;
  if (!result) return <p class="muted">Trying it…</p>;
  const { outcome, refusal, duration_ms: ms, log, results, result_count: total } = result;
  const [tone, words] = OUTCOMES[outcome];
  return (
    <section class="preview" aria-label="What would become of it" aria-busy={!isCurrent}>
      <p class="preview-verdict" role="status">
        <Badge status={outcome} tone={tone} label={words} />
        {!isCurrent && <span class="muted">trying it again…</span>}
        {isCurrent && ms !== null && <span class="muted number">ran for {milliseconds(Math.max(ms, 1))}</span>}
      </p>
      {refusal && <p class="preview-refusal">{refusal.reason}</p>}
      {log.length > 0 && <Code isRaw label="Console" text={log.join('\n')} />}
      {results.map((it, index) => (
        <Result key={index} result={it} name={total === 1 ? 'Event' : `Event ${index + 1} of ${total}`} />
      ))}
      {total > results.length && <p class="muted">The first {results.length} are shown.</p>}
    </section>
  );
}

type OneResult = FunctionTestResult['results'][number];

function Result({ result: { payload, refusal, notes, route }, name }: { readonly result: OneResult; readonly name: string }) {
  const { event_type: type } = (payload ?? {}) as { readonly event_type?: unknown };
  return (
    <div class="preview-event">
      {refusal && <p class="preview-refusal">{refusal.reason}</p>}
      {notes.length > 0 && <p class="muted">Left out: {notes.join('; ')}</p>}
      {route && <PreviewedRoute route={route} eventType={typeof type === 'string' ? type : ''} />}
      <Code label={name} text={JSON.stringify(payload)} />
    </div>
  );
}
