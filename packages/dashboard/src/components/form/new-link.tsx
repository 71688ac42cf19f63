import { projectHref } from '../../router/project-path.js';
import { ButtonLink } from '../layout/button.js';

/**
 * Links to a form that creates a resource, as the key `n` does: `<NewLink what="endpoint"
 * path="/endpoints/new" />`.
 */
export function NewLink({ what, path }: { readonly what: string; readonly path: string }) {
  return (
    <ButtonLink kind="main" keys="n" href={projectHref(path)}>
      {`New ${what}`}
    </ButtonLink>
  );
}
