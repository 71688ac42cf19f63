import { useAction } from '../../api/use-action.js';
import { toastError } from '../feedback/toast.js';
import { Button } from '../layout/button.js';

/** A button that acts without asking. Errors appear in a toast. */
export function ActionButton({
  work,
  ...look
}: Omit<Parameters<typeof Button>[0], 'type' | 'isRunning' | 'onPress'> & {
  readonly work: () => Promise<unknown>;
}) {
  const { run, isRunning } = useAction(() => work().catch(toastError));
  return <Button {...look} isRunning={isRunning} onPress={run} />;
}
