import { useEffect } from 'preact/hooks';
import { Problem } from '../components/feedback/problem.js';
import { path } from '../router/location.js';
import { session, sessionProblem, readSession } from '../session/session.js';
import { readProjects } from '../session/projects.js';
import { Shell } from './shell.js';
import { RETURN_PATH, SignInReturn } from './sign-in-return.js';
import { SignIn } from './sign-in.js';

export function App() {
  const isSignedIn = Boolean(session.value);
  const isReturning = path.value === RETURN_PATH;
  useEffect(() => {
    if (!isReturning && session.peek() === undefined) void readSession();
  }, [isReturning]);
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
  return isSignedIn ? <Shell /> : <SignIn />;
}
