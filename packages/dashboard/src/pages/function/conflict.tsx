import { Code } from '../../components/data/code.js';
import { Button } from '../../components/layout/button.js';
import type { Draft } from './use-draft.js';

/** Another user has saved another function meanwhile: shows both and lets the user choose. */
export function Conflict({
  draft,
  conflict,
}: {
  readonly draft: Draft;
  readonly conflict: string;
}) {
  return (
    <div class="problem" role="alert">
      <p class="problem-sentence">
        Someone has saved another function meanwhile. Yours is not saved.
      </p>
      <div class="function-theirs">
        <Code isRaw label="The function as it is now" text={conflict} />
      </div>
      <div class="form-actions">
        <Button onPress={draft.takeTheirs}>Take theirs</Button>
        <Button onPress={draft.saveMine}>Save mine over it</Button>
      </div>
    </div>
  );
}
