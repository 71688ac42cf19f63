import { useAction, useDraft } from '../../api/change.js';
import { api } from '../../api/client.js';
import { toast } from '../../components/feedback.js';
import { ButtonLink, Page } from '../../components/layout.js';
import { navigate, projectHref, projectPath } from '../../router/location.js';
import { EventTypeForm, fieldsOf, newEventType } from './event-type-form.js';
import { pathOf } from './path.js';

export default function EventTypeNew() {
  const draft = useDraft(newEventType);
  const fields = fieldsOf(draft.values);
  const create = useAction(async () => {
    if (!fields) return;
    const created = await api().eventTypes.create({ name: draft.values.name.trim(), ...fields });
    toast(`${created.name} was created.`);
    navigate(projectPath(pathOf(created)), { replace: true });
  });
  return (
    <Page title="New event type" above={<a href={projectHref('/event-types')}>Event types</a>}>
      <EventTypeForm
        draft={draft}
        isNew
        action={create}
        verb="Create event type"
        isReady={fields !== undefined}
        actions={<ButtonLink href={projectHref('/event-types')}>Cancel</ButtonLink>}
      />
    </Page>
  );
}
