import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { accountApi } from '../../api/client.js';
import { Empty } from '../../components/feedback.js';
import { fieldError, Select, TextField } from '../../components/field.js';
import { Form } from '../../components/form.js';
import { Page } from '../../components/layout.js';
import { navigate } from '../../router/location.js';
import { may, newKey, readProjects, session } from '../../session/session.js';

const TYPES = [
  ['outgoing', 'Outgoing: send your events to others'],
  ['incoming', 'Incoming: receive webhooks from others'],
] as const;
type Type = (typeof TYPES)[number][0];

/**
 * The page at `/new-project`: creates a project and opens the page for sending its first message.
 */
export default function NewProjectPage() {
  const organisations = (session.value?.organisations ?? []).filter(({ role }) =>
    may('admin', role),
  );
  const [name, setName] = useState('');
  const [type, setType] = useState<string>('outgoing');
  const [organisation, setOrganisation] = useState(organisations[0]?.uid ?? '');
  const action = useAction(async () => {
    const project = { name: name.trim(), type: type as Type, organisation_id: organisation };
    const { uid, api_key: key } = await accountApi().projects.create(project);
    newKey.value = { projectId: uid, key: key.key };
    await readProjects();
    navigate(`/projects/${uid}/start`);
  });
  return (
    <Page title="New project">
      {organisations.length === 0 ? (
        <Empty title="You cannot create a project">
          <p>
            Creating a project requires the admin role in an organisation. Ask an admin or owner to
            create one, or to change your role.
          </p>
        </Empty>
      ) : (
        <Form action={action} verb="Create project">
          <p>
            A project contains sources, endpoints and subscriptions, and the events that pass
            between them. Each project has its own API keys.
          </p>
          <TextField
            label="Name"
            hint="For example, your service and its environment: Orders (test)."
            value={name}
            onChange={setName}
            error={fieldError(action.error, 'name')}
            isRequired
            hasFocus
          />
          <Select label="Type" value={type} onChange={setType} options={TYPES} />
          {organisations.length > 1 && (
            <Select
              label="Organisation"
              value={organisation}
              onChange={setOrganisation}
              options={organisations.map((it) => [it.uid, it.name])}
            />
          )}
        </Form>
      )}
    </Page>
  );
}
