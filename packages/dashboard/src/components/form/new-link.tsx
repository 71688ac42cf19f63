import { projectHref } from '../../router/project-path.js';
import { ButtonLink } from './button.js';

/** Leads to the form of a new thing of the project, as the key `n` does: `<NewLink what="endpoint" path="/endpoints/new" />`. */
export function NewLink({ what, path }: { readonly what: string; readonly path: string }) {
  return (
    <ButtonLink kind="main" keys="n" href={projectHref(path)}>
      {`New ${what}`}
    </ButtonLink>
  );
}
