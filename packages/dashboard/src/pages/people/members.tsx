import type { Member } from '@gateway/client';
import { useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useList, type List } from '../../api/read.js';
import { Badge, Paged, Table, timeColumn, type TableColumn } from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { Select } from '../../components/field.js';
import { ConfirmButton } from '../../components/form.js';
import { Panel } from '../../components/layout.js';
import { may, readSession, session } from '../../session/session.js';
import { givableRoles, type ShownOrganisation } from './organisation.js';

/** Such as `Ada Lovelace`, or the email address if the name is empty. */
export function nameOf({
  first_name: first,
  last_name: last,
  email,
}: Pick<Member, 'first_name' | 'last_name' | 'email'>): string {
  return `${first} ${last}`.trim() || email;
}

/** Admins can change and remove members, but only owners can change or remove other owners. */
export function Members({ organisation }: { organisation: ShownOrganisation }) {
  const list = useList<Member>(`${organisation.uid} members`, (page, signal) =>
    accountApi().members.list(organisation.uid, page, { signal }).page(),
  );
  const mine = session.value?.user.uid;
  const mayChange = ({ role }: Member) =>
    may(role === 'owner' ? 'owner' : 'admin', organisation.role);
  const columns: readonly TableColumn<Member>[] = [
    {
      name: 'Name',
      cell: (member) => (
        <>
          {nameOf(member)} {member.uid === mine && <Badge status="you" />}
        </>
      ),
    },
    { name: 'Email', cell: ({ email }) => email },
    { name: 'Role', cell: ({ role }) => role },
    timeColumn('Since', 'created_at', 'row'),
    ...(may('admin', organisation.role)
      ? [
          {
            name: 'Actions',
            cell: (member: Member) =>
              mayChange(member) && (
                <span class="row-actions">
                  <ChangeRole member={member} organisation={organisation} list={list} />
                  <Remove member={member} organisation={organisation} list={list} />
                </span>
              ),
          },
        ]
      : []),
  ];
  return (
    <Panel title="Members">
      <Paged list={list} lines={2}>
        {(rows) => <Table label="Members" rows={rows} columns={columns} />}
      </Paged>
    </Panel>
  );
}

interface MemberOf {
  readonly member: Member;
  readonly organisation: ShownOrganisation;
  readonly list: List<Member>;
}

function ChangeRole({ member, organisation: { uid: id }, list }: MemberOf) {
  const [role, setRole] = useState(member.role);
  const person = nameOf(member);
  return (
    <ConfirmButton
      label="Change role…"
      spoken={`Change role of ${person}`}
      title={`Role of ${person}`}
      verb="Change role"
      kind="main"
      isReady={role !== member.role}
      work={async () => {
        await accountApi().members.update(id, member.uid, { role });
        changed(member, list, `${person} is now ${role}.`);
      }}
    >
      <Select
        label="Role"
        hint="Each role includes the ones above it."
        value={role}
        onChange={(value) => setRole(value as Member['role'])}
        options={givableRoles(id)}
      />
    </ConfirmButton>
  );
}

function Remove({ member, organisation: { uid: id, name }, list }: MemberOf) {
  const person = nameOf(member);
  return (
    <ConfirmButton
      label="Remove…"
      spoken={`Remove ${person}`}
      title={`Remove ${person}?`}
      verb="Remove"
      work={async () => {
        await accountApi().members.delete(id, member.uid);
        changed(member, list, `${person} was removed.`);
      }}
    >
      <p>
        {person} immediately loses access to the projects of {name}, including with personal API
        keys. Project API keys stay active: rotate those that {person} knows.
      </p>
    </ConfirmButton>
  );
}

function changed(member: Member, list: List<Member>, sentence: string): void {
  toast(sentence);
  list.refresh();
  // The user's own role decides which actions are shown, so reload the session after a change.
  if (member.uid === session.value?.user.uid) void readSession();
}
