import { useEffect } from 'preact/hooks';
import { Problem } from '../components/feedback.js';
import { isPortal, path } from '../router/location.js';
import { readProjects, readSession, session, sessionProblem } from '../session/session.js';
import { AcceptInvitation, invitationToken, watchInvitations } from './accept-invitation.js';
import { PortalApp } from './portal.js';
import { resetToken, ResetPassword, watchResets } from './reset-password.js';
import { Shell } from './shell.js';
import { RETURN_PATH, SignIn, SignInReturn } from './sign-in.js';

/**
 * Whether this document is the portal. Portal and dashboard are separate documents, because only
 * the portal may be framed.
 */
const isPortalDocument = isPortal.peek();

export function App() {
  if (isPortal.value === isPortalDocument) return isPortalDocument ? <PortalApp /> : <Dashboard />;
  location.reload();
  return null;
}

function Dashboard() {
  const isSignedIn = Boolean(session.value);
  const isReturning = path.value === RETURN_PATH;
  useEffect(() => {
    if (!isReturning && session.peek() === undefined) void readSession();
  }, [isReturning]);
  useEffect(watchInvitations, []);
  useEffect(watchResets, []);
  useEffect(() => {
    if (isSignedIn) void readProjects();
  }, [isSignedIn]);
  if (isReturning) return <SignInReturn />;
  if (sessionProblem.value) {
    return (
      <main class="page">
        <Problem error={sessionProblem.value} retry={() => void readSession()} />
      </main>
    );
  }
  if (resetToken.value) return <ResetPassword key={resetToken.value} token={resetToken.value} />;
  if (session.value === undefined) return null;
  if (invitationToken.value)
    return <AcceptInvitation key={invitationToken.value} token={invitationToken.value} />;
  return isSignedIn ? <Shell /> : <SignIn />;
}
