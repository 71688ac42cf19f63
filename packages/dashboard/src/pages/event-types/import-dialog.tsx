import type { ImportedEventTypes } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { Badge } from '../../components/data/badge.js';
import { Button } from '../../components/layout/button.js';
import { Dialog } from '../../components/form/dialog.js';
import { Field, TextArea } from '../../components/form/field.js';
import { FormDialog } from '../../components/form/form-dialog.js';
import { objectOf } from '../../format/json.js';
import { count } from '../../format/number.js';
import { projectHref } from '../../router/project-path.js';

const TONES = { created: 'ok', updated: 'warn', unchanged: 'plain' } as const;

/** Creates and updates event types from the webhooks of an OpenAPI document. */
export function ImportDialog({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('');
  const [imported, setImported] = useState<ImportedEventTypes>();
  const document = objectOf(text);
  const importing = useAction(async () => {
    if (document.problem === undefined) setImported(await api().eventTypes.import(document.value));
  });
  if (imported) {
    const { created, updated, unchanged, content } = imported;
    return (
      <Dialog title="Imported" onClose={onClose} actions={<Button onPress={onClose}>Close</Button>}>
        <p role="status">
          {content.length === 0
            ? 'The document has no webhooks and no callbacks: nothing was imported.'
            : `${count(created)} created, ${count(updated)} updated, ${count(unchanged)} unchanged.`}
        </p>
        <ul class="imported">
          {content.map(({ name, result }) => (
            <li key={name}>
              <Badge status={result} tone={TONES[result]} />{' '}
              <a href={projectHref(`/event-types/${encodeURIComponent(name)}`)}>{name}</a>
            </li>
          ))}
        </ul>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="Import event types"
      verb="Import"
      isReady={text.trim() !== '' && document.problem === undefined}
      action={importing}
      onClose={onClose}
    >
      <p>
        The webhooks and callbacks of an OpenAPI 3 document become event types. Those that are there
        are changed, all or nothing; none is removed.
      </p>
      <Field label="File">
        {(wiring) => (
          <input
            {...wiring}
            type="file"
            accept=".json,application/json"
            onChange={({ currentTarget: { files } }) => void files?.[0]?.text().then(setText)}
          />
        )}
      </Field>
      <TextArea
        label="OpenAPI document"
        isMono
        rows={10}
        hint="In JSON, with all that it refers to in it."
        value={text}
        onChange={setText}
        error={document.problem}
      />
    </FormDialog>
  );
}
