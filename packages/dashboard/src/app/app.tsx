import { useEffect } from 'preact/hooks';
import { Problem, Toasts } from '../components/index.js';
import { isPortal, path } from '../router/location.js';
import { invitationLink, resetLink } from '../session/link-token.js';
import { readProjects, readSession, session, sessionProblem } from '../session/session.js';
import { PortalApp } from './portal.js';
import { Shell } from './shell.js';
import {
  AcceptInvitation,
  ResetPassword,
  RETURN_PATH,
  SignIn,
  SignInReturn,
} from './signed-out.js';

/** Portal and dashboard are separate documents, because only the portal may be framed. */
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
  useEffect(invitationLink.watch, []);
  useEffect(resetLink.watch, []);
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
  if (resetLink.token.value)
    return <ResetPassword key={resetLink.token.value} token={resetLink.token.value} />;
  if (session.value === undefined) return null;
  if (invitationLink.token.value)
    return <AcceptInvitation key={invitationLink.token.value} token={invitationLink.token.value} />;
  if (isSignedIn) return <Shell />;
  return (
    <>
      <SignIn />
      <Toasts />
    </>
  );
}
