import type { Session } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { accountApi } from '../../api/client.js';
import { toast } from '../../components/feedback.js';
import { fieldError, Options, TextField } from '../../components/field.js';
import { ConfirmButton, Form } from '../../components/form.js';
import { Panel } from '../../components/layout.js';
import { query, setQuery } from '../../router/location.js';
import {
  may,
  preferredProject,
  readSession,
  roleIn,
  session,
  type MemberRole,
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

/** Only owners can grant ownership. */
export function givableRoles(organisation: string): typeof ROLES {
  return roleIn(organisation) === 'owner' ? ROLES : ROLES.filter(([role]) => role !== 'owner');
}

export function OrganisationSettings({
  organisation: { uid, name: known, role },
}: {
  organisation: ShownOrganisation;
}) {
  const [name, setName] = useState(known);
  const action = useAction(async () => {
    await accountApi().organisations.update(uid, { name: name.trim() });
    await readSession();
    toast('Organisation renamed.');
  });
  return (
    <Panel title="Organisation" actions={<NewOrganisation />}>
      {may('admin', role) ? (
        <Form action={action} verb="Rename" kind="plain" isReady={name.trim() !== known}>
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            error={fieldError(action.error, 'name')}
            isRequired
          />
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
