import type { WholeQuarantinedMessage } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { Problem } from '../../components/feedback/problem.js';
import { Button } from '../../components/layout/button.js';
import { TextArea } from '../../components/form/field.js';
import { PreviewResult } from '../preview/preview-result.js';
import { usePreview } from '../preview/use-preview.js';
import { textOf } from '../preview/bytes.js';
import { tell } from './replay.js';

/**
 * Edits a message. Tests it during typing, with its source's function and the current
 * subscriptions, and replays it if it would be accepted.
 */
export function MessageEditor({
  message,
  onChange,
}: {
  readonly message: WholeQuarantinedMessage;
  readonly onChange: () => void;
}) {
  const before = textOf(message);
  const [text, setText] = useState(before);
  const preview = usePreview({ quarantine_id: message.uid, raw: text }, (test, options) =>
    api().sources.testFunction(test, options),
  );
  const isBinary = message.raw_encoding === 'base64';
  const save = useAction(async () => {
    if (text !== before || isBinary) {
      await api().quarantine.update(
        message.uid,
        { raw: text },
        { headers: { 'if-match': `"${message.updated_at}"` } },
      );
    }
    tell(await api().quarantine.replay(message.uid));
    onChange();
  });
  const isGood =
    preview.isCurrent && preview.result !== undefined && preview.result.outcome !== 'quarantined';
  return (
    <div class="message-editor">
      <div class="form">
        <TextArea
          label="Message that is replayed"
          hint={
            isBinary
              ? 'Its bytes are not UTF-8: what could not be read is shown as �. The message is replaced by what you write here; the bytes that came are kept.'
              : 'The bytes that came are kept.'
          }
          rows={Math.min(Math.max(text.split('\n').length + 1, 8), 20)}
          isMono
          value={text}
          onChange={setText}
        />
        {save.error && (
          <Problem error={save.error}>
            <Button onPress={onChange}>Read the message again</Button>
          </Problem>
        )}
        <div class="form-actions">
          <Button kind="main" isDisabled={!isGood} isRunning={save.isRunning} onPress={save.run}>
            {text === before ? 'Replay' : 'Save and replay'}
          </Button>
          {text !== before && <Button onPress={() => setText(before)}>Undo changes</Button>}
        </div>
      </div>
      <PreviewResult preview={preview} />
    </div>
  );
}
