import { DialogButton, Empty, Page } from '../../components/index.js';
import { may } from '../../session/session.js';
import { Invitations, Invite, useInvitations } from './invitations.js';
import { Members } from './members.js';
import {
  OrganisationSettings,
  OrganisationSwitch,
  type ShownOrganisation,
  shownOrganisation,
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
            <DialogButton
              kind="main"
              keys="n"
              dialog={(close) => <Invite organisation={organisation} onClose={close} />}
            >
              Invite…
            </DialogButton>
          )}
        </>
      }
    >
      <Members organisation={organisation} />
      {isAdmin && <Invitations organisation={organisation} list={invitations} />}
      <OrganisationSettings organisation={organisation} />
    </Page>
  );
}
