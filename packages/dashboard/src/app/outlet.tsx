import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ButtonLink, Empty, Loading, Page, Problem } from '../components/index.js';
import { href, isPortal, path, projectHref } from '../router/location.js';
import { match, type PageProps, type PageRoute } from '../router/route.js';
import { storeOf } from '../router/storage.js';

type LoadedPage = { readonly route: PageRoute } & (
  { readonly page: ComponentType<PageProps> } | { readonly page: undefined; readonly error: Error }
);

/** A newer server has different asset files, so a page that fails to load is reloaded once. */
const RELOADED = 'gateway-reloaded';
const store = storeOf('sessionStorage');

export function Outlet({ routes }: { routes: readonly PageRoute[] }) {
  const found = routes.flatMap((route) => {
    const params = match(route.path, path.value);
    return params ? [{ route, params }] : [];
  })[0];
  const [loaded, setLoaded] = useState<LoadedPage>();
  const route = found?.route;

  useEffect(() => {
    if (!route) return undefined;
    let isGone = false;
    route.load().then(
      ({ default: page }) => {
        store.remove(RELOADED);
        if (!isGone) setLoaded({ route, page });
      },
      (error: unknown) => {
        if (store.get(RELOADED) === null) {
          store.set(RELOADED, '1');
          location.reload();
        } else if (!isGone) setLoaded({ route, page: undefined, error: error as Error });
      },
    );
    return () => {
      isGone = true;
    };
  }, [route]);

  if (!found) {
    return (
      <Page title="Not found">
        <Empty title="This page does not exist">
          <p>The link may be outdated or incomplete.</p>
          <ButtonLink href={isPortal.value ? projectHref('') : href('/')}>
            Go to the home page
          </ButtonLink>
        </Empty>
      </Page>
    );
  }
  if (loaded?.route !== route || !loaded) {
    return (
      <div class="page">
        <Loading />
      </div>
    );
  }
  if (!loaded.page) {
    return (
      <Page title="Page not loaded">
        <Problem error={loaded.error} retry={() => location.reload()} />
      </Page>
    );
  }
  const Shown = loaded.page;
  // Remount the page on a new path, to discard its state.
  return <Shown key={path.value} id={found.params['id'] ?? ''} />;
}
