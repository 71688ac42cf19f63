import type { FunctionTestResult } from '@gateway/client';
import { Code } from '../../components/data/code.js';
import { PreviewVerdict } from './preview-verdict.js';
import { PreviewedRoute } from './previewed-route.js';
import type { PreviewState } from './use-preview.js';

type Preview = PreviewState<FunctionTestResult>;

const OUTCOMES = {
  accepted: ['ok', 'would be accepted'],
  dropped: ['warn', 'would be dropped by the function'],
  quarantined: ['bad', 'would be quarantined'],
} as const;

/** An agent's result for a message: its events with their routes, or why there are none. */
export function PreviewResult({ preview }: { readonly preview: Preview }) {
  const { outcome, results = [], result_count: total = 0 } = preview.result ?? {};
  return (
    <PreviewVerdict preview={preview} outcome={outcome && OUTCOMES[outcome]}>
      {results.map((it, index) => (
        <Result
          key={index}
          result={it}
          name={total === 1 ? 'Event' : `Event ${index + 1} of ${total}`}
        />
      ))}
      {total > results.length && <p class="muted">The first {results.length} are shown.</p>}
    </PreviewVerdict>
  );
}

type OneResult = FunctionTestResult['results'][number];

function Result({
  result: { payload, refusal, notes, route },
  name,
}: {
  readonly result: OneResult;
  readonly name: string;
}) {
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
