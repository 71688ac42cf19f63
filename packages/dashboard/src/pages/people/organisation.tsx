import type { Session } from '@gateway/client';
import { useState } from 'preact/hooks';
import { accountApi } from '../../api/index.js';
import {
  ConfirmButton,
  Form,
  Options,
  Panel,
  TextField,
  toast,
  useForm,
} from '../../components/index.js';
import { query, setQuery } from '../../router/location.js';
import {
  may,
  type MemberRole,
  preferredProject,
  readSession,
  roleIn,
  session,
} from '../../session/session.js';

export type ShownOrganisation = Session['organisations'][number];

/** The one set by the query parameter or, failing that, the last project's, or the user's first. */
export function shownOrganisation(): ShownOrganisation | undefined {
  const mine = session.value?.organisations ?? [];
  const of = (id: string | null | undefined) => mine.find(({ uid }) => uid === id);
  return of(query.value.get('organisation')) ?? of(preferredProject()?.organisation_id) ?? mine[0];
}

/** Renders nothing for a user with only one organisation. */
export function OrganisationSwitch({ shown }: { shown: ShownOrganisation }) {
  const mine = session.value?.organisations ?? [];
  if (mine.length < 2) return null;
  return (
    <select
      class="organisation-switch"
      aria-label="Organisation"
      value={shown.uid}
      onChange={(event) => setQuery({ organisation: event.currentTarget.value })}
    >
      <Options options={mine.map(({ uid, name }) => [uid, name])} chosen={shown.uid} />
    </select>
  );
}

/** Each role includes the permissions of those before it. */
const ROLES: readonly (readonly [role: MemberRole, label: string])[] = [
  ['viewer', 'Viewer: read everything, including payloads'],
  ['member', 'Member: edit endpoints and sources, resend deliveries'],
  ['admin', 'Admin: manage projects, API keys and people, read the audit log'],
  ['owner', 'Owner: manage owners, delete the organisation'],
];

export function givableRoles(organisation: string): typeof ROLES {
  return roleIn(organisation) === 'owner' ? ROLES : ROLES.filter(([role]) => role !== 'owner');
}

export function OrganisationSettings({
  organisation: { uid, name: known, role },
}: {
  organisation: ShownOrganisation;
}) {
  const form = useForm({ name: known }, async ({ name }) => {
    await accountApi().organisations.update(uid, { name: name.trim() });
    await readSession();
    toast('Organisation renamed.');
  });
  const isChanged = form.values.name.trim() !== known;
  return (
    <Panel title="Organisation" actions={<NewOrganisation />}>
      {may('admin', role) ? (
        <Form action={form} verb="Rename" kind="plain" isReady={isChanged}>
          <TextField label="Name" {...form.text('name')} isRequired />
        </Form>
      ) : (
        <p>
          Your role in {known} is {role}.
        </p>
      )}
    </Panel>
  );
}

function NewOrganisation() {
  const [name, setName] = useState('');
  return (
    <ConfirmButton
      label="New organisation…"
      title="New organisation"
      verb="Create"
      what=""
      kind="main"
      isReady={name.trim() !== ''}
      work={async () => {
        const { uid } = await accountApi().organisations.create({ name: name.trim() });
        await readSession();
        setQuery({ organisation: uid });
        toast('Organisation created. You are its owner.');
      }}
    >
      <p>An organisation has its own people, projects and audit log. You become its owner.</p>
      <TextField label="Name" value={name} onChange={setName} isRequired hasFocus />
    </ConfirmButton>
  );
}
