import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { isPortal } from '../../router/project-path.js';

/**
 * The frame of every page: heading (also the title of the window), actions and content.
 *
 * @param props.isFull fills the height of the window, for a list that scrolls itself
 */
export function Page({
  title,
  above,
  actions,
  isFull = false,
  children,
}: {
  readonly title: string;
  /** The parent of the page, for example a link to its list. */
  readonly above?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly isFull?: boolean;
  readonly children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · ${isPortal.value ? 'Webhooks' : 'Gateway'}`;
  }, [title]);
  return (
    <div class={`page${isFull ? ' full' : ''}`}>
      <header class="page-head">
        <div>
          {above && <p class="page-above">{above}</p>}
          <h1>{title}</h1>
        </div>
        {actions && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
