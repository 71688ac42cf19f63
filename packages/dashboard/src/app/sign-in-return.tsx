import { useEffect } from 'preact/hooks';
import { useAction } from '../api/use-action.js';
import { Loading } from '../components/feedback/loading.js';
import { Problem } from '../components/feedback/problem.js';
import { ButtonLink } from '../components/layout/button.js';
import { href, navigate } from '../router/location.js';
import { returnFromProvider } from '../session/session.js';

/** The redirect address registered at the OpenID Connect provider. */
export const RETURN_PATH = '/sign-in/callback';

export function SignInReturn() {
  const action = useAction(async () => navigate(await returnFromProvider(), { replace: true }));
  useEffect(() => {
    document.title = 'Sign in · Gateway';
    action.run();
  }, []);
  return (
    <main class="sign-in">
      <div class="form">
        <h1>Sign in to Gateway</h1>
        {action.error ? <Problem error={action.error} /> : <Loading />}
        {action.error && <ButtonLink href={href('/')}>Back to the sign-in page</ButtonLink>}
      </div>
    </main>
  );
}
