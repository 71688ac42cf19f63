import { Problem } from '../../components/feedback/problem.js';
import { Progress } from '../../components/feedback/progress.js';
import { Button } from '../../components/layout/button.js';
import { Dialog } from '../../components/form/dialog.js';
import { count } from '../../format/number.js';
import { useBatch, type RunStep } from './use-batch.js';

/** Texts of the dialog; counts are already formatted. */
interface BatchWords {
  /** The rows in the plural, after their count: `deliveries that failed, last hour`. */
  readonly what: string;
  /** Replaces `what` while rows are counted. */
  readonly counting?: string;
  /** The button: `Send 12 again`. */
  readonly action: (count: string) => string;
  /** The result without a full stop: `12 were sent again`. */
  readonly done: (count: string) => string;
  /** Follows the number of rows that wait for their endpoint. */
  readonly held?: string;
  /** Follows the number of skipped rows. */
  readonly left?: string;
}

/**
 * Counts the rows that a filter matches and, once confirmed, processes them with a progress bar.
 */
export function BatchDialog({
  title,
  words: { what, counting = what, action, done: doneWords, held, left },
  step,
  onClose,
}: {
  readonly title: string;
  readonly words: BatchWords;
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
            <Button onPress={onClose}>
              {phase === 'done' || phase === 'stopped' ? 'Close' : 'Cancel'}
            </Button>
            {phase === 'counted' && found.count > 0 && (
              <Button kind="main" onPress={start}>
                {action(count(found.count))}
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
            Counting {counting}: {count(found.count)} so far…
          </p>
        )}
        {phase === 'counted' && (
          <p>
            {found.count === 0 ? 'There are no' : count(found.count)} {what}.
          </p>
        )}
        {phase === 'counted' && found.held > 0 && (
          <p>
            {count(found.held)} {held}
          </p>
        )}
        {phase === 'counted' && found.left > 0 && (
          <p>
            {count(found.left)} {left}
          </p>
        )}
        {(phase === 'done' || phase === 'stopped') && !error && (
          <p>
            {doneWords(count(done))}
            {phase === 'stopped' && ', then it was stopped'}.
          </p>
        )}
      </div>
      {phase === 'running' && (
        <Progress label={title} value={found.count === 0 ? 0 : done / found.count} />
      )}
    </Dialog>
  );
}
