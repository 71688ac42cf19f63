import type { ChangedEventType, EventType } from '@gateway/client';
import { api } from '../../api/client.js';
import { changed, useDraft } from '../../api/use-draft.js';
import { useEdit } from '../../api/use-edit.js';
import { toast } from '../../components/feedback/toast.js';
import { Button } from '../../components/layout/button.js';
import { Conflict } from '../../components/form/conflict.js';
import { setQuery } from '../../router/location.js';
import { draftOf, fieldsOf } from './event-type-draft.js';
import { EventTypeForm } from './event-type-form.js';

export function EventTypeEdit({
  type,
  onSaved,
}: {
  readonly type: EventType;
  readonly onSaved: () => void;
}) {
  const draft = useDraft(draftOf(type));
  const end = () => setQuery({ edit: undefined }, { replace: true });
  const edit = useEdit<EventType, ChangedEventType>(type, {
    write: (changes, options) => api().eventTypes.update(type.uid, changes, options),
    read: () => api().eventTypes.get(type.uid),
    onSaved: () => {
      end();
      onSaved();
      toast('Saved.');
    },
  });
  const [before, after] = [fieldsOf(draftOf(edit.base)), fieldsOf(draft.values)];
  return (
    <EventTypeForm
      draft={draft}
      action={{ ...edit, run: () => before && after && edit.save(changed(before, after)) }}
      verb="Save"
      isReady={after !== undefined}
      actions={<Button onPress={end}>Cancel</Button>}
    >
      <Conflict
        what="event type"
        edit={edit}
        onTheirs={(theirs) => draft.replace(draftOf(theirs))}
      />
    </EventTypeForm>
  );
}
