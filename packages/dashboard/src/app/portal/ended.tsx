import { Page } from '../../components/layout/page.js';

/** Shown without a portal link, or after it has expired. */
export function Ended() {
  return (
    <main>
      <Page title="This link has ended">
        <p>
          Links to this page last for a limited time. Open it again from where you came, and you get
          a new one.
        </p>
      </Page>
    </main>
  );
}
