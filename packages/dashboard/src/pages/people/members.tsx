import type { Member } from '@gateway/client';
import { useState } from 'preact/hooks';
import { accountApi, useList } from '../../api/index.js';
import {
  Badge,
  type TableColumns,
  ConfirmButton,
  Paged,
  Panel,
  Select,
  Table,
  timeCell,
} from '../../components/index.js';
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
  const list = useList<Member>(`${organisation.uid} members`, (page, options) =>
    accountApi().members.list(organisation.uid, page, options),
  );
  const mine = session.value?.user.uid;
  const mayChange = ({ role }: Member) =>
    may(role === 'owner' ? 'owner' : 'admin', organisation.role);
  const columns: TableColumns<Member> = {
    Name: (member) => (
      <>
        {nameOf(member)} {member.uid === mine && <Badge status="you" />}
      </>
    ),
    Email: ({ email }) => email,
    Role: ({ role }) => role,
    Since: timeCell('created_at', 'row'),
    Actions:
      may('admin', organisation.role) &&
      ((member) =>
        mayChange(member) && (
          <>
            <ChangeRole member={member} organisation={organisation} />
            <Remove member={member} organisation={organisation} />
          </>
        )),
  };
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
}

function ChangeRole({ member, organisation: { uid: id } }: MemberOf) {
  const [role, setRole] = useState(member.role);
  const person = nameOf(member);
  return (
    <ConfirmButton
      verb="Change role"
      title={`Role of ${person}`}
      what={`of ${person}`}
      isRow
      kind="main"
      isReady={role !== member.role}
      work={() => accountApi().members.update(id, member.uid, { role })}
      told={`${person} is now ${role}.`}
      onDone={() => readOwnRole(member)}
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

function Remove({ member, organisation: { uid: id, name } }: MemberOf) {
  const person = nameOf(member);
  return (
    <ConfirmButton
      verb="Remove"
      what={person}
      isRow
      work={() => accountApi().members.delete(id, member.uid)}
      told={`${person} was removed.`}
      onDone={() => readOwnRole(member)}
    >
      <p>
        {person} immediately loses access to the projects of {name}, including with personal API
        keys. Project API keys stay active: rotate those that {person} knows.
      </p>
    </ConfirmButton>
  );
}

/** The user's own role decides which actions are shown. */
function readOwnRole({ uid }: Member): void {
  if (uid === session.value?.user.uid) void readSession();
}
