import { useEffect } from 'preact/hooks';
import { Problem } from '../components/feedback/problem.js';
import { path } from '../router/location.js';
import { session, sessionProblem, readSession } from '../session/session.js';
import { readProjects } from '../session/projects.js';
import { AcceptInvitation } from './accept-invitation.js';
import { invitationToken, watchInvitations } from './invitation.js';
import { Shell } from './shell.js';
import { RETURN_PATH, SignInReturn } from './sign-in-return.js';
import { SignIn } from './sign-in.js';

export function App() {
  const isSignedIn = Boolean(session.value);
  const isReturning = path.value === RETURN_PATH;
  useEffect(() => {
    if (!isReturning && session.peek() === undefined) void readSession();
  }, [isReturning]);
  useEffect(watchInvitations, []);
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
  if (session.value === undefined) return null;
  if (invitationToken.value) return <AcceptInvitation key={invitationToken.value} token={invitationToken.value} />;
  return isSignedIn ? <Shell /> : <SignIn />;
}
