import { useState } from 'preact/hooks';
import { Empty } from '../../components/feedback.js';
import { Button, Page } from '../../components/layout.js';
import { may } from '../../session/session.js';
import { Invitations, Invite, useInvitations } from './invitations.js';
import { Members } from './members.js';
import {
  OrganisationSettings,
  OrganisationSwitch,
  shownOrganisation,
  type ShownOrganisation,
} from './organisation.js';

export default function PeoplePage() {
  const organisation = shownOrganisation();
  if (organisation) return <People key={organisation.uid} organisation={organisation} />;
  return (
    <Page title="People">
      <Empty title="You are not a member of an organisation">
        <p>Ask an admin to invite you.</p>
      </Empty>
    </Page>
  );
}

function People({ organisation }: { organisation: ShownOrganisation }) {
  const [isInviting, setInviting] = useState(false);
  const isAdmin = may('admin', organisation.role);
  const invitations = useInvitations(isAdmin ? organisation.uid : undefined);
  return (
    <Page
      title="People"
      above={organisation.name}
      actions={
        <>
          <OrganisationSwitch shown={organisation} />
          {isAdmin && (
            <Button kind="main" keys="n" onPress={() => setInviting(true)}>
              Invite…
            </Button>
          )}
        </>
      }
    >
      <Members organisation={organisation} />
      {isAdmin && <Invitations organisation={organisation} list={invitations} />}
      <OrganisationSettings organisation={organisation} />
      {isInviting && (
        <Invite
          organisation={organisation}
          onDone={invitations.refresh}
          onClose={() => setInviting(false)}
        />
      )}
    </Page>
  );
}
