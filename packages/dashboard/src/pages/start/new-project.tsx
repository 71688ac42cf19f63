import { accountApi } from '../../api/index.js';
import { Empty, Form, Page, Select, TextField, useForm } from '../../components/index.js';
import { navigate } from '../../router/location.js';
import { may, newKey, readProjects, session } from '../../session/session.js';

const TYPES = [
  ['outgoing', 'Outgoing: send your events to others'],
  ['incoming', 'Incoming: receive webhooks from others'],
] as const;
type Type = (typeof TYPES)[number][0];

export default function NewProjectPage() {
  const organisations = (session.value?.organisations ?? []).filter(({ role }) =>
    may('admin', role),
  );
  const initial = { name: '', type: 'outgoing' as Type, organisation: organisations[0]?.uid ?? '' };
  const form = useForm(initial, async ({ name, type, organisation }) => {
    const project = { name: name.trim(), type, organisation_id: organisation };
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
        <Form action={form} verb="Create project">
          <p>
            A project contains sources, endpoints and subscriptions, and the events that pass
            between them. Each project has its own API keys.
          </p>
          <TextField
            label="Name"
            hint="For example, your service and its environment: Orders (test)."
            {...form.text('name')}
            isRequired
            hasFocus
          />
          <Select label="Type" options={TYPES} {...form.text('type')} />
          {organisations.length > 1 && (
            <Select
              label="Organisation"
              options={organisations.map((it) => [it.uid, it.name])}
              {...form.text('organisation')}
            />
          )}
        </Form>
      )}
    </Page>
  );
}
