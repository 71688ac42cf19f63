import { useEffect } from 'preact/hooks';
import { Problem } from '../components/feedback/problem.js';
import { session, sessionProblem, readSession } from '../session/session.js';
import { readProjects } from '../session/projects.js';
import { Shell } from './shell.js';
import { SignIn } from './sign-in.js';

export function App() {
  const isSignedIn = Boolean(session.value);
  useEffect(() => void readSession(), []);
  useEffect(() => {
    if (isSignedIn) void readProjects();
  }, [isSignedIn]);
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
