import { Page } from '../../components/layout/page.js';

/** Shown to who comes without a link, or with one that has ended. */
export function Ended() {
  return (
    <main>
      <Page title="This link has ended">
        <p>Links to this page last for a limited time. Open it again from where you came, and you get a new one.</p>
      </Page>
    </main>
  );
}
