import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { brandName } from '../session/theme.js';

/** The frame of pages without a session. `title` is also the title of the window. */
export function SignedOut({
  title,
  heading = title,
  hasBrand = false,
  children,
}: {
  title: string;
  heading?: string;
  hasBrand?: boolean;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · ${brandName}`;
  }, []);
  return (
    <main class="sign-in">
      <div class="form">
        {hasBrand && <span class="brand" aria-hidden="true" />}
        <h1>{heading}</h1>
        {children}
      </div>
    </main>
  );
}
