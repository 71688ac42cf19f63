import { api } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { useDraft } from '../../api/use-draft.js';
import { toast } from '../../components/feedback/toast.js';
import { ButtonLink } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { navigate } from '../../router/location.js';
import { projectHref, projectPath } from '../../router/project-path.js';
import { fieldsOf, newEventType } from './event-type-draft.js';
import { EventTypeForm } from './event-type-form.js';
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
        verb="Create"
        isReady={fields !== undefined}
        actions={<ButtonLink href={projectHref('/event-types')}>Cancel</ButtonLink>}
      />
    </Page>
  );
}
