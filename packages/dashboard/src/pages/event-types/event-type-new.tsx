import { api } from '../../api/index.js';
import { ButtonLink, Page, toast, useForm } from '../../components/index.js';
import { navigate, projectPath } from '../../router/location.js';
import { EventTypeForm, fieldsOf, newEventType } from './event-type-form.js';
import { pathOf } from './path.js';

export default function EventTypeNew() {
  const form = useForm(newEventType, async ({ name }) => {
    if (!fields) return;
    const created = await api().eventTypes.create({ name: name.trim(), ...fields });
    toast(`${created.name} was created.`);
    navigate(projectPath(pathOf(created)), { replace: true });
  });
  const fields = fieldsOf(form.values);
  return (
    <Page title="New event type" list="Event types">
      <EventTypeForm
        form={form}
        isNew
        verb="Create event type"
        isReady={fields !== undefined}
        actions={<ButtonLink to="/event-types">Cancel</ButtonLink>}
      />
    </Page>
  );
}
