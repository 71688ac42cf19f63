import { useResource } from '../../api/use-resource.js';
import { Loaded } from '../../components/feedback/loading.js';
import { ButtonLink } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { Panel } from '../../components/layout/panel.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { EndpointStep } from './endpoint-step.js';
import { MessageStep } from './message-step.js';
import { checksOf, readProgress, type Check } from './progress.js';

const LIVE_MS = 1_000;
const MARKS = { ok: '✓', waiting: '…', bad: '!' } as const;

export default function StartPage() {
  const progress = useResource(`${projectId.value} start`, readProgress, { everyMs: LIVE_MS });
  return (
    <Page title="First message">
      <Loaded resource={progress} lines={12}>
        {(now) => {
          const checks = checksOf(now);
          const isDelivered = checks.every(({ state }) => state === 'ok');
          return (
            <div class="start">
              <ol class="steps">
                <EndpointStep known={now.endpoint} onMade={progress.refresh} />
                <MessageStep isDone={Boolean(now.event)} onSent={progress.refresh} />
              </ol>
              <div class="start-check">
                <Panel title="Check">
                  <div role="status">
                    <ul class="checks">
                      {checks.map((check) => (
                        <CheckLine key={check.sentence} check={check} />
                      ))}
                    </ul>
                  </div>
                  {isDelivered && (
                    <ButtonLink kind="main" href={projectHref('/overview')}>
                      Go to the overview
                    </ButtonLink>
                  )}
                </Panel>
              </div>
            </div>
          );
        }}
      </Loaded>
    </Page>
  );
}

function CheckLine({ check: { state, sentence, to, action } }: { readonly check: Check }) {
  return (
    <li class={state}>
      <span class="check-mark" aria-hidden="true">
        {MARKS[state]}
      </span>
      <span>
        {sentence} {to && <a href={projectHref(to)}>{action}</a>}
      </span>
    </li>
  );
}
