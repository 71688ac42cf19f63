import { Problem } from '../../components/feedback/problem.js';
import { Progress } from '../../components/feedback/progress.js';
import { Button } from '../../components/form/button.js';
import { Dialog } from '../../components/form/dialog.js';
import { count } from '../../format/number.js';
import { useBatch, type RunStep } from './use-batch.js';

/**
 * Counts what a filter matches, and after a confirmation works on it, with its progress.
 *
 * @param props.what the rows in the plural: `deliveries that failed of the last hour`
 * @param props.verb what is done: `Send`, and has been done: `sent`
 */
export function BatchDialog({
  title,
  what,
  verb: [verb, past],
  step,
  onClose,
}: {
  readonly title: string;
  readonly what: string;
  readonly verb: readonly [now: string, past: string];
  readonly step: RunStep;
  readonly onClose: () => void;
}) {
  const { phase, found, done, error, start, stop } = useBatch(step);
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        phase === 'running' ? (
          <Button onPress={stop}>Stop</Button>
        ) : (
          <>
            <Button onPress={onClose}>{phase === 'done' || phase === 'stopped' ? 'Close' : 'Cancel'}</Button>
            {phase === 'counted' && found.count > 0 && (
              <Button kind="main" onPress={start}>
                {verb} {count(found.count)} again
              </Button>
            )}
          </>
        )
      }
    >
      {error && <Problem error={error} />}
      <div class="batch" role="status">
        {phase === 'counting' && (
          <p>
            Counting {what}: {count(found.count)} so far…
          </p>
        )}
        {phase === 'counted' && (
          <p>
            {found.count === 0 ? 'There are no' : count(found.count)} {what}.
          </p>
        )}
        {phase === 'counted' && found.held > 0 && <p>{count(found.held)} of them wait until their paused endpoint is activated.</p>}
        {phase === 'counted' && found.left > 0 && <p>{count(found.left)} more are left alone: their endpoint is inactive or deleted.</p>}
        {(phase === 'done' || phase === 'stopped') && !error && (
          <p>
            {count(done)} were {past} again{phase === 'stopped' && ', then it was stopped'}.
          </p>
        )}
      </div>
      {phase === 'running' && <Progress label={title} value={found.count === 0 ? 0 : done / found.count} />}
    </Dialog>
  );
}
